use std::time::Duration;

/// Intervals and lifetimes of consumers. Tests shorten them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Lifetime of a slot's lease without renewal.
    pub lease: Duration,
    /// Interval between renewals of the lease.
    pub renew: Duration,
    /// Delay before the second attempt.
    pub first_delay: Duration,
    /// Maximum delay between attempts. Delays double until they reach this maximum.
    pub longest_delay: Duration,
    /// Time from the first attempt until an event is parked.
    pub give_up_after: Duration,
    /// Delay before outcomes are stored in one batch.
    pub batch: Duration,
    /// Delay before the positions of skipped events are stored.
    pub idle_batch: Duration,
    /// Maximum time to sleep until a retry. During a longer sleep, a change of the clock would go unnoticed.
    pub tick: Duration,
    /// Time limit for deliveries that are in progress at shutdown.
    pub shutdown: Duration,
}

impl Timing {
    /// The documented defaults.
    pub const DEFAULT: Self = Self {
        lease: Duration::from_secs(15),
        renew: Duration::from_secs(5),
        first_delay: Duration::from_secs(1),
        longest_delay: Duration::from_secs(3_600),
        give_up_after: Duration::from_secs(86_400),
        batch: Duration::from_millis(50),
        idle_batch: Duration::from_secs(5),
        tick: Duration::from_secs(1),
        shutdown: Duration::from_secs(5),
    };

    /// Returns the delay after `attempts` attempts. A jitter of 10% prevents deliveries that failed together from being
    /// retried together.
    pub(super) fn delay(&self, attempts: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
        let delay = self.first_delay.saturating_mul(doubled);
        let delay = delay.min(self.longest_delay);
        delay.mul_f64(rand::random_range(0.9..1.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_an_hour() {
        let expected = [
            1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600,
        ];
        for (attempts, seconds) in (1..).zip(expected) {
            let delay = Timing::DEFAULT.delay(attempts).as_secs_f64();
            let share = delay / f64::from(seconds);
            assert!((0.9..=1.1).contains(&share), "{attempts}: {delay}");
        }
        let longest = Timing::DEFAULT.delay(u32::MAX);
        assert!(longest <= Duration::from_secs(3_960));
    }
}
