use super::{Fault, Given, SettingsError, Values};
use threadkeep_domain::{Rate, RateLimits};

pub(super) fn read(values: &mut Values) -> Result<RateLimits, SettingsError> {
    Ok(RateLimits {
        new_threads: rate(&values.take("rate_new_threads"))?,
        writes: rate(&values.take("rate_writes"))?,
        thread_writes: rate(&values.take("rate_thread_writes"))?,
    })
}

fn rate(given: &Given) -> Result<Option<Rate>, SettingsError> {
    let rule = "a count from 1 to 1000000, `/` and a period from 1s to 1d, such as 60/1m, or \
        60/1m burst 10";
    let rate = given.filled().map(str::parse).transpose();
    rate.map_err(|_| given.refuse(Fault::Expected(rule)))
}
