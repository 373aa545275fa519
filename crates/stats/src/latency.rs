use std::time::Duration;

use super::Slot;

/// The first bucket counts all durations below 2 to this power, in nanoseconds (about 1 us).
const FIRST_BIT: u32 = 10;
/// Number of powers of two that have buckets, up to 2^36 ns (69 s). The last bucket counts all longer durations.
const POWERS: usize = 26;
/// Number of buckets per power of two. A bucket is at most a quarter as wide as its lower bound.
const PARTS: usize = 4;
const BUCKETS: usize = POWERS * PARTS + 1;

/// Counts durations in buckets of exponential width.
#[derive(Debug, Clone)]
pub(super) struct Latency {
    buckets: [u32; BUCKETS],
    longest: Duration,
}

impl Default for Latency {
    fn default() -> Self {
        Self {
            buckets: [0; BUCKETS],
            longest: Duration::ZERO,
        }
    }
}

impl Slot for Latency {
    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Latency {
    pub(super) fn record(&mut self, took: Duration) {
        let bucket = &mut self.buckets[bucket(took)];
        *bucket = bucket.saturating_add(1);
        self.longest = self.longest.max(took);
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket = bucket.saturating_add(*more);
        }
        self.longest = self.longest.max(other.longest);
    }

    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().copied().map(u64::from).sum()
    }

    pub(super) fn longest(&self) -> Option<Duration> {
        (self.count() > 0).then_some(self.longest)
    }

    /// Returns a percentile with a relative error of up to one eighth, or `None` if no durations were recorded.
    pub(super) fn percentile(&self, percent: u64) -> Option<Duration> {
        let rank = (self.count() * percent).div_ceil(100);
        let mut counted = 0;
        let bucket = self.buckets.iter().position(|count| {
            counted += u64::from(*count);
            counted > 0 && counted >= rank
        })?;
        Some(middle(bucket).min(self.longest))
    }
}

fn bucket(took: Duration) -> usize {
    let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    let Some(power) = nanos
        .checked_ilog2()
        .and_then(|bit| bit.checked_sub(FIRST_BIT))
    else {
        return 0;
    };
    let part = nanos >> (power + FIRST_BIT - 2) & 3;
    (power as usize * PARTS + part as usize + 1).min(BUCKETS - 1)
}

fn middle(bucket: usize) -> Duration {
    let Some(offset) = bucket.checked_sub(1) else {
        return Duration::from_nanos(1 << (FIRST_BIT - 1));
    };
    let quarter = 1_u64 << (offset / PARTS + FIRST_BIT as usize - 2);
    let lower = quarter * (PARTS + offset % PARTS) as u64;
    Duration::from_nanos(lower + quarter / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_within_an_eighth_of_the_exact_value() {
        let mut latency = Latency::default();
        assert_eq!((latency.percentile(50), latency.longest()), (None, None));
        for micros in 1..=10_000 {
            latency.record(Duration::from_micros(micros));
        }

        for percent in [1, 50, 90, 99] {
            let exact = percent as f64 * 100.0;
            let about = latency.percentile(percent).unwrap().as_secs_f64() * 1e6;
            assert!((about / exact - 1.0).abs() < 0.125, "{about} for {exact}");
        }
        assert_eq!(latency.longest(), Some(Duration::from_millis(10)));
        assert_eq!(latency.count(), 10_000);
    }

    #[test]
    fn every_duration_has_a_matching_bucket() {
        for bit in 0..64 {
            for nanos in [1 << bit, (1 << bit) + (1 << bit) / 3, u64::MAX >> bit] {
                let took = Duration::from_nanos(nanos);
                let mut latency = Latency::default();
                latency.record(took);
                let about = latency.percentile(99).unwrap();
                if (1 << FIRST_BIT..1 << 36).contains(&nanos) {
                    let ratio = about.as_secs_f64() / took.as_secs_f64();
                    assert!((0.875..1.125).contains(&ratio), "{about:?} for {took:?}");
                }
                assert!(about <= took, "never more than the longest");
            }
        }
        let mut latency = Latency::default();
        latency.record(Duration::MAX);
        assert_eq!(latency.longest(), Some(Duration::MAX));
    }
}
