use std::str::FromStr;

const PERIOD_SECONDS_MAX: u64 = 86_400;
const COUNT_MAX: u64 = 1_000_000;

/// A rate limit that uses the generic cell rate algorithm ([ITU-T I.371](https://www.itu.int/rec/T-REC-I.371)): a
/// burst, then one action per interval.
///
/// The only state is `full_us`, the time at which the whole burst is available again. Because there are no fixed time
/// windows, two full bursts can never occur back to back. In a period of any length, the limit allows at most one burst
/// plus one action per interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    interval_us: u64,
    burst: u64,
}

/// A malformed rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a rate is a count and a period, such as `60/1m`, or `60/1m burst 10`")]
pub struct RateError;

/// The name of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RateName {
    /// New threads per client address.
    NewThreads,
    /// Writes per client address.
    Writes,
    /// Writes to a thread, or to a scope without a thread.
    ThreadWrites,
}

/// A rate limit was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("rate limit `rate_{}` exceeded; retry in {} s", .limit.as_str(), self.retry_after_seconds())]
pub struct RateLimited {
    /// The limit.
    pub limit: RateName,
    /// Milliseconds until the next action is allowed.
    pub retry_after_ms: u64,
}

/// The rate limits; `None` is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// New threads per client address.
    pub new_threads: Option<Rate>,
    /// Writes per client address.
    pub writes: Option<Rate>,
    /// Writes to a thread, or to a scope without a thread.
    pub thread_writes: Option<Rate>,
}

impl Rate {
    /// Allows `count` (1 to 1,000,000) actions per `period_seconds` (1 to 86,400), and up to `burst` (1 to `count`)
    /// actions at once.
    pub fn new(count: u64, period_seconds: u64, burst: u64) -> Result<Self, RateError> {
        let is_legal = (1..=COUNT_MAX).contains(&count)
            && (1..=PERIOD_SECONDS_MAX).contains(&period_seconds)
            && (1..=count).contains(&burst);
        if !is_legal {
            return Err(RateError);
        }
        Ok(Self {
            // rounded up, because a shorter interval would exceed the rate
            interval_us: (period_seconds * 1_000_000).div_ceil(count),
            burst,
        })
    }

    /// Returns the interval per action, in microseconds.
    #[must_use]
    pub fn interval_us(&self) -> u64 {
        self.interval_us
    }

    /// Returns how far `full_us` may be ahead of the current time, in microseconds.
    #[must_use]
    pub fn tolerance_us(&self) -> u64 {
        self.interval_us * self.burst
    }

    /// Takes one action and returns the new `full_us`. If the limit is exceeded, returns the time to wait as an error,
    /// in microseconds. That time is at least 1 and at most one interval.
    pub fn take(&self, full_us: u64, now_us: u64) -> Result<u64, u64> {
        let max_us = now_us + self.tolerance_us();
        // `full_us` may exceed `max_us` if the clock was set back or the limit was lowered
        let full_us = full_us.clamp(now_us, max_us) + self.interval_us;
        if full_us > max_us {
            Err(full_us - max_us)
        } else {
            Ok(full_us)
        }
    }

    /// Gives back one action and returns the new `full_us`.
    #[must_use]
    pub fn give_back(&self, full_us: u64) -> u64 {
        full_us.saturating_sub(self.interval_us)
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let mut words = text.split_whitespace();
        let (count, period) = words
            .next()
            .and_then(|word| word.split_once('/'))
            .ok_or(RateError)?;
        let count = number(count)?;
        let burst = match (words.next(), words.next(), words.next()) {
            (None, ..) => count,
            (Some("burst"), Some(burst), None) => number(burst)?,
            _ => return Err(RateError),
        };
        Self::new(count, seconds(period)?, burst)
    }
}

fn number(text: &str) -> Result<u64, RateError> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(RateError);
    }
    text.parse().map_err(|_| RateError)
}

fn seconds(period: &str) -> Result<u64, RateError> {
    let unit_at = period.len().checked_sub(1).ok_or(RateError)?;
    let (count, unit) = period.split_at_checked(unit_at).ok_or(RateError)?;
    let unit_seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(RateError),
    };
    number(count)?.checked_mul(unit_seconds).ok_or(RateError)
}

impl RateName {
    /// Every limit.
    pub const ALL: [Self; 3] = [Self::NewThreads, Self::Writes, Self::ThreadWrites];

    /// Returns the name in metrics and answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NewThreads => "new_threads",
            Self::Writes => "writes",
            Self::ThreadWrites => "thread_writes",
        }
    }
}

impl RateLimited {
    /// Returns the wait in whole seconds, at least 1.
    #[must_use]
    pub fn retry_after_seconds(&self) -> u64 {
        self.retry_after_ms.div_ceil(1_000).max(1)
    }
}

impl RateLimits {
    /// Returns whether no limit is set.
    #[must_use]
    pub fn are_off(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW_US: u64 = 1_700_000_000_000_000;

    fn play(rate: &Rate, moments: &[u64]) -> Vec<u64> {
        let mut full_us = 0;
        let taken = moments.iter().filter(|now_us| {
            let taken = rate.take(full_us, **now_us);
            full_us = taken.unwrap_or(full_us);
            taken.is_ok()
        });
        taken.copied().collect()
    }

    fn rates() -> impl Strategy<Value = Rate> {
        (1_u64..50, 1_u64..100, any::<prop::sample::Index>()).prop_map(|(count, period, burst)| {
            Rate::new(count, period, 1 + burst.index(count as usize) as u64).unwrap()
        })
    }

    fn moments() -> impl Strategy<Value = Vec<u64>> {
        let pauses = prop_oneof![Just(0_u64), 0_u64..3_000_000, 0_u64..60_000_000];
        prop::collection::vec(pauses, 1..200).prop_map(|pauses| {
            let after = |now: &mut u64, pause| {
                *now += pause;
                Some(*now)
            };
            pauses.into_iter().scan(NOW_US, after).collect()
        })
    }

    proptest! {
        #[test]
        fn no_period_exceeds_the_burst_plus_its_intervals(
            rate in rates(),
            moments in moments(),
        ) {
            let taken = play(&rate, &moments);
            for (index, from) in taken.iter().enumerate() {
                for (more, until) in taken[index..].iter().enumerate() {
                    let given = (until - from) / rate.interval_us;
                    prop_assert!((more as u64) < rate.burst + given);
                }
            }
        }

        #[test]
        fn the_reported_wait_is_exact(
            rate in rates(),
            moments in moments(),
        ) {
            let mut full_us = 0;
            for now_us in moments {
                match rate.take(full_us, now_us) {
                    Ok(taken_us) => full_us = taken_us,
                    Err(wait_us) => {
                        prop_assert!((1..=rate.interval_us).contains(&wait_us));
                        prop_assert!(rate.take(full_us, now_us + wait_us - 1).is_err());
                        prop_assert!(rate.take(full_us, now_us + wait_us).is_ok());
                    }
                }
            }
        }

        #[test]
        fn one_action_per_interval_is_never_rejected(rate in rates(), count in 1_usize..200) {
            let moments: Vec<_> = (0..count as u64).map(|n| NOW_US + n * rate.interval_us).collect();
            prop_assert_eq!(play(&rate, &moments).len(), count);
        }

        #[test]
        fn a_returned_action_can_be_taken_again_immediately(rate in rates(), moments in moments()) {
            let mut full_us = 0;
            for now_us in moments {
                if let Ok(taken_us) = rate.take(full_us, now_us) {
                    let again = rate.take(rate.give_back(taken_us), now_us);
                    prop_assert_eq!(again, Ok(taken_us));
                    full_us = taken_us;
                }
            }
        }

        #[test]
        fn a_clock_set_back_causes_a_wait_of_at_most_one_interval(
            rate in rates(),
            back_us in 0..NOW_US / 2,
        ) {
            let mut full_us = 0;
            while let Ok(taken_us) = rate.take(full_us, NOW_US) {
                full_us = taken_us;
            }
            let wait_us = rate.take(full_us, NOW_US - back_us).unwrap_err();
            prop_assert!(wait_us <= rate.interval_us);
        }
    }

    #[test]
    fn rates_are_parsed() {
        for (text, rate) in [
            ("60/1m", Rate::new(60, 60, 60)),
            ("1/30s", Rate::new(1, 30, 1)),
            ("5/2h", Rate::new(5, 7_200, 5)),
            (" 100/1d  burst 10 ", Rate::new(100, 86_400, 10)),
            ("1000000/1s", Rate::new(1_000_000, 1, 1_000_000)),
        ] {
            assert_eq!(text.parse(), rate, "{text}");
            assert!(rate.is_ok(), "{text}");
        }
        for text in [
            "",
            "60",
            "60/",
            "/1m",
            "0/1m",
            "60/0s",
            "60/1",
            "60/m",
            "60/1w",
            "+60/1m",
            "6.5/1m",
            "60/1m 10",
            "60/1m burst",
            "60/1m burst 0",
            "60/1m burst 61",
            "60/1m burst 5 x",
            "60/25h",
            "1000001/1s",
            "60/1µ",
            "99999999999999999999/1s",
            "1/99999999999999999999d",
        ] {
            assert_eq!(text.parse::<Rate>(), Err(RateError), "{text}");
        }
    }

    #[test]
    fn seconds_to_wait_are_whole_and_at_least_one() {
        for (ms, seconds) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2)] {
            let limited = RateLimited {
                limit: RateName::Writes,
                retry_after_ms: ms,
            };
            assert_eq!(limited.retry_after_seconds(), seconds);
        }
    }
}
