//! The gate of writes.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::RateCounters;
use super::subject::{RateSubject, Uncounted};
use crate::attempts::in_time;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Fingerprint, Rate, RateLimited, RateLimits, RateName};
use threadkeep_store::{Counted, Rates, Reader, Store, WriteError};

/// Lets writes through as often as the limits say.
///
/// The counters of an address change in one step, and that of a thread in another, since they are not in the same slot
/// of a cluster. The address is counted first, since its limit can stop a client; its count is given back if the
/// thread's limit then rejects the write.
///
/// The default has no limits.
#[derive(Debug, Clone, Default)]
pub struct RateGate(Option<Arc<Limited>>);

/// The limits of a gate, and where writes are counted.
#[derive(Debug)]
struct Limited {
    rates: Arc<dyn Rates>,
    threads: Arc<dyn Store>,
    limits: RateLimits,
    counters: Arc<RateCounters>,
    timeout: Duration,
}

/// A write that is not let through.
#[derive(Debug)]
enum Turned {
    Away(RateLimited),
    Failed(WriteError),
}

/// The rates of an address that a write counts for: at most two.
type OfAddress = Vec<(RateName, Rate)>;

impl RateGate {
    /// A gate that counts in that store. A write may take as long as `timeout`, its passing of the gate
    /// included.
    #[must_use]
    pub fn new(
        rates: Arc<dyn Rates>,
        threads: Arc<dyn Store>,
        limits: RateLimits,
        counters: Arc<RateCounters>,
        timeout: Duration,
    ) -> Self {
        Self(Some(Arc::new(Limited {
            rates,
            threads,
            limits,
            counters,
            timeout,
        })))
    }

    /// True if there are limits.
    pub(crate) fn has_limits(&self) -> bool {
        self.0.is_some()
    }

    /// Does a write when the limits let it through. `may_make`: the write may make a thread.
    pub(crate) async fn pass<T>(
        &self,
        scope: &ScopeId,
        may_make: bool,
        write: impl Future<Output = Result<T, WriteError>>,
    ) -> Result<T, WriteError> {
        match &self.0 {
            Some(limited) => limited.pass(scope, may_make, write).await,
            None => write.await,
        }
    }
}

impl Limited {
    /// Does a write once it is let through, and both within the time that a request may take.
    async fn pass<T>(
        &self,
        scope: &ScopeId,
        may_make: bool,
        write: impl Future<Output = Result<T, WriteError>>,
    ) -> Result<T, WriteError> {
        let passed = async {
            match self.admit(scope, may_make).await {
                Ok(()) => write.await,
                Err(Turned::Away(limited)) => {
                    self.counters.count(limited.limit);
                    Err(limited.into())
                }
                Err(Turned::Failed(error)) => Err(error),
            }
        };
        in_time(self.timeout, passed).await
    }

    async fn admit(&self, scope: &ScopeId, may_make: bool) -> Result<(), Turned> {
        let uncounted = RateSubject::uncounted(scope);
        let looks = may_make && uncounted.may_make;
        let of_address = self.of_address(scope, &uncounted, looks).await?;
        let address = uncounted.address.unwrap_or(Fingerprint([0; 16]));
        let address = Counted::Address(&address);
        self.take(address, &of_address).await?;
        let of_scope = self
            .limits
            .thread_writes
            .map(|rate| (RateName::ThreadWrites, rate));
        if let Some(of_scope) = of_scope.filter(|_| uncounted.is_first_to_scope) {
            let taken = self.take(Counted::Scope(scope), &[of_scope]).await;
            if taken.is_err() {
                self.give_back(address, &of_address).await;
            }
            taken?;
        }
        RateSubject::has_counted(scope, looks);
        Ok(())
    }

    /// Counts a write for its client address. A write to a thread that does not exist creates it, wherever its id
    /// comes from: anyone can get ids.
    async fn of_address(
        &self,
        scope: &ScopeId,
        uncounted: &Uncounted,
        looks: bool,
    ) -> Result<OfAddress, Turned> {
        let mut rates = OfAddress::new();
        if uncounted.address.is_none() {
            return Ok(rates);
        }
        if let (Some(rate), true) = (self.limits.writes, uncounted.is_first) {
            rates.push((RateName::Writes, rate));
        }
        if let (Some(rate), true, Some(id)) = (self.limits.new_threads, looks, scope.thread()) {
            let thread = self
                .threads
                .get_thread(id, Reader::ALL)
                .await
                .map_err(Turned::Failed)?;
            if thread.is_none() {
                rates.push((RateName::NewThreads, rate));
            }
        }
        Ok(rates)
    }

    async fn take(&self, whose: Counted<'_>, rates: &[(RateName, Rate)]) -> Result<(), Turned> {
        if rates.is_empty() {
            return Ok(());
        }
        match self.rates.take_rates(whose, rates).await {
            Ok(None) => Ok(()),
            Ok(Some(limited)) => Err(Turned::Away(limited)),
            Err(error) => Err(Turned::Failed(error.into())),
        }
    }

    /// Budget that cannot be given back refills by itself.
    async fn give_back(&self, whose: Counted<'_>, rates: &[(RateName, Rate)]) {
        if rates.is_empty() {
            return;
        }
        if let Err(error) = self.rates.give_back_rates(whose, rates).await {
            let error = &error as &dyn Error;
            tracing::debug!(error, "the rate limit counts a rejected write");
        }
    }
}
