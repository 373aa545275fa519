use async_trait::async_trait;
use redis::Value;

use crate::transport::{Command, UNKNOWN, integer};
use crate::{RedisStore, Script};
use threadkeep_domain::{Rate, RateLimited, RateName};
use threadkeep_store::{Counted, Rates, StoreError};

impl RedisStore {
    fn rate_command(
        &self,
        script: Script,
        counted: Counted<'_>,
        rates: &[(RateName, Rate)],
    ) -> Command {
        let mut cmd = script.call(rates.len());
        for (name, _) in rates {
            cmd.arg(self.names.rate(counted, *name));
        }
        cmd.arg(self.ahead());
        for (_, rate) in rates {
            cmd.arg(rate.interval_us()).arg(rate.tolerance_us());
        }
        cmd
    }
}

#[async_trait]
impl Rates for RedisStore {
    async fn take_rates(
        &self,
        counted: Counted<'_>,
        rates: &[(RateName, Rate)],
    ) -> Result<Option<RateLimited>, StoreError> {
        let cmd = self.rate_command(Script::TakeRates, counted, rates);
        let Value::Array(refused) = self.link.calls().read(cmd).await? else {
            return Ok(None);
        };
        let [index, wait_us] = &refused[..] else {
            return Err(UNKNOWN);
        };
        let index = integer(index)? as usize;
        let (limit, _) = *rates.get(index).ok_or(UNKNOWN)?;
        Ok(Some(RateLimited {
            limit,
            retry_after_ms: integer(wait_us)?.div_ceil(1_000),
        }))
    }

    async fn give_back_rates(
        &self,
        counted: Counted<'_>,
        rates: &[(RateName, Rate)],
    ) -> Result<(), StoreError> {
        let cmd = self.rate_command(Script::GiveBackRates, counted, rates);
        // Sent as a read, which does not wait for replicas, but may be retried and then return the permits twice.
        self.link.calls().read(cmd).await.map(drop)
    }
}
