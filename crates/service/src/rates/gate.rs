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

/// Runs writes if the rate limits allow them.
///
/// The counters of an address and those of a thread are in different slots of a Redis cluster, so the store updates
/// them in separate steps. A write is counted first against the address, then against the thread. If the thread's limit
/// rejects the write, the count against the address is reverted.
///
/// The default has no limits.
#[derive(Debug, Clone, Default)]
pub struct RateGate(Option<Arc<Limited>>);

#[derive(Debug)]
struct Limited {
    rates: Arc<dyn Rates>,
    threads: Arc<dyn Store>,
    limits: RateLimits,
    counters: Arc<RateCounters>,
    timeout: Duration,
}

#[derive(Debug)]
enum RateRejection {
    OverLimit(RateLimited),
    Failed(WriteError),
}

/// The rate limits, up to two, that apply to the client address of a write.
type AddressRates = Vec<(RateName, Rate)>;

impl RateGate {
    /// Creates a gate that counts writes in `rates`. `timeout` limits the duration of a write, including its checks.
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

    pub(crate) fn has_limits(&self) -> bool {
        self.0.is_some()
    }

    /// Runs `write` if the limits allow it. Set `may_make` if the write may create a thread.
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
    async fn pass<T>(
        &self,
        scope: &ScopeId,
        may_make: bool,
        write: impl Future<Output = Result<T, WriteError>>,
    ) -> Result<T, WriteError> {
        let passed = async {
            match self.admit(scope, may_make).await {
                Ok(()) => write.await,
                Err(RateRejection::OverLimit(limited)) => {
                    self.counters.count(limited.limit);
                    Err(limited.into())
                }
                Err(RateRejection::Failed(error)) => Err(error),
            }
        };
        in_time(self.timeout, passed).await
    }

    async fn admit(&self, scope: &ScopeId, may_make: bool) -> Result<(), RateRejection> {
        let uncounted = RateSubject::uncounted(scope);
        let checks_existence = may_make && uncounted.may_make;
        let of_address = self.of_address(scope, &uncounted, checks_existence).await?;
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
        RateSubject::record_counted(scope, checks_existence);
        Ok(())
    }

    /// Selects the rates for the client's address. A write to a missing thread counts as the creation of a thread even
    /// if this service generated the id, because clients can obtain any number of ids.
    async fn of_address(
        &self,
        scope: &ScopeId,
        uncounted: &Uncounted,
        checks_existence: bool,
    ) -> Result<AddressRates, RateRejection> {
        let mut rates = AddressRates::new();
        if uncounted.address.is_none() {
            return Ok(rates);
        }
        if let (Some(rate), true) = (self.limits.writes, uncounted.is_first) {
            rates.push((RateName::Writes, rate));
        }
        if let (Some(rate), true, Some(id)) =
            (self.limits.new_threads, checks_existence, scope.thread())
        {
            let thread = self
                .threads
                .get_thread(id, Reader::ALL)
                .await
                .map_err(RateRejection::Failed)?;
            if thread.is_none() {
                rates.push((RateName::NewThreads, rate));
            }
        }
        Ok(rates)
    }

    async fn take(
        &self,
        counted: Counted<'_>,
        rates: &[(RateName, Rate)],
    ) -> Result<(), RateRejection> {
        if rates.is_empty() {
            return Ok(());
        }
        match self.rates.take_rates(counted, rates).await {
            Ok(None) => Ok(()),
            Ok(Some(limited)) => Err(RateRejection::OverLimit(limited)),
            Err(error) => Err(RateRejection::Failed(error.into())),
        }
    }

    /// Reverts the counts of a rejected write. If that fails, the write counts until the limit's budget has refilled.
    async fn give_back(&self, counted: Counted<'_>, rates: &[(RateName, Rate)]) {
        if rates.is_empty() {
            return;
        }
        if let Err(error) = self.rates.give_back_rates(counted, rates).await {
            let error = &error as &dyn Error;
            tracing::debug!(error, "the rate limit counts a rejected write");
        }
    }
}
