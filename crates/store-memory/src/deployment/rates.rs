use async_trait::async_trait;

use crate::budget::Part;
use crate::slots::{Due, Slots};
use crate::{BATCH, MemoryStore};
use threadkeep_domain::heap::Heap;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Fingerprint, Rate, RateLimited, RateName};
use threadkeep_store::{Counted, Rates, StoreError};

#[derive(Debug, Default)]
pub(crate) struct Counters(Slots<Subject, Counter>);

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Subject {
    Address(Fingerprint),
    Scope(ScopeId),
}

/// The time at which each rate's full burst is available again, in microseconds. Indexed by rate.
#[derive(Debug, Default)]
struct Counter([u64; RateName::ALL.len()]);

impl Due for Counter {
    fn due_ms(&self) -> u64 {
        let last_us = self.0.iter().max().copied().unwrap_or_default();
        last_us.div_ceil(1_000)
    }
}

impl Heap for Subject {
    fn heap_bytes(&self) -> u64 {
        match self {
            Self::Address(_) => 0,
            Self::Scope(scope) => scope.heap_bytes(),
        }
    }
}

impl Heap for Counter {
    fn heap_bytes(&self) -> u64 {
        0
    }
}

impl From<Counted<'_>> for Subject {
    fn from(counted: Counted<'_>) -> Self {
        match counted {
            Counted::Address(digest) => Self::Address(*digest),
            Counted::Scope(scope) => Self::Scope(scope.clone()),
        }
    }
}

impl Counter {
    fn take(&mut self, rates: &[(RateName, Rate)], now_us: u64) -> Option<RateLimited> {
        let mut taken = self.0;
        let mut refused: Option<(u64, RateName)> = None;
        for (name, rate) in rates {
            let full_us = &mut taken[*name as usize];
            match rate.take(*full_us, now_us) {
                Ok(taken_us) => *full_us = taken_us,
                Err(wait_us) if refused.is_none_or(|(longest_us, _)| wait_us > longest_us) => {
                    refused = Some((wait_us, *name));
                }
                Err(_) => {}
            }
        }
        let Some((wait_us, limit)) = refused else {
            self.0 = taken;
            return None;
        };
        Some(RateLimited {
            limit,
            retry_after_ms: wait_us.div_ceil(1_000),
        })
    }

    fn give_back(&mut self, rates: &[(RateName, Rate)]) {
        for (name, rate) in rates {
            let full_us = &mut self.0[*name as usize];
            *full_us = rate.give_back(*full_us);
        }
    }
}

impl Heap for Counters {
    fn heap_bytes(&self) -> u64 {
        self.0.heap_bytes()
    }
}

impl Part for Counters {}

impl Counters {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn sweep(&mut self, now_ms: u64) -> bool {
        self.0.sweep(now_ms, BATCH, |_, _| ())
    }
}

#[async_trait]
impl Rates for MemoryStore {
    async fn take_rates(
        &self,
        subject: Counted<'_>,
        rates: &[(RateName, Rate)],
    ) -> Result<Option<RateLimited>, StoreError> {
        let has_room = self.0.has_room();
        let mut counters = self.0.counters();
        let now_us = self.0.clock.now_ms() * 1_000;
        let take = |counter: &mut Counter| counter.take(rates, now_us);
        let subject = subject.into();
        // a full store does not count a new caller, but admits the caller, because the call may free memory
        if !has_room && counters.0.get(&subject).is_none() {
            return Ok(take(&mut Counter::default()));
        }
        Ok(counters.0.change(&subject, take))
    }

    async fn give_back_rates(
        &self,
        subject: Counted<'_>,
        rates: &[(RateName, Rate)],
    ) -> Result<(), StoreError> {
        let mut counters = self.0.counters();
        counters
            .0
            .change(&subject.into(), |counter| counter.give_back(rates));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use threadkeep_store::Clock;

    #[tokio::test]
    async fn an_expired_counter_is_freed() {
        let clock = Clock::system();
        let store = MemoryStore::new(clock.clone());
        let (digest, rates) = (
            Fingerprint([1; 16]),
            [(RateName::Writes, "2/1m".parse().unwrap())],
        );
        let address = Counted::Address(&digest);
        store.take_rates(address, &rates).await.unwrap();
        clock.advance(Duration::from_secs(29));
        assert!(!store.0.counters().sweep(clock.now_ms()));
        assert_eq!(store.len(), 1);

        clock.advance(Duration::from_secs(2));
        assert!(!store.0.counters().sweep(clock.now_ms()));

        assert!(store.is_empty());
    }
}
