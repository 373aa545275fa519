use std::time::{Duration, Instant};

use threadkeep_store::Clock;

use super::clients::Clients;
use super::history::{Event, Interval};

/// Tolerance in milliseconds, because Redis may set an expiry time a moment after computing it.
const SLACK_MS: u64 = 250;

/// Readings of the Redis clock in milliseconds, shifted like `clock`. Each reading includes the interval of its call.
pub(super) struct Times {
    redis: redis::Connection,
    clock: Clock,
    readings: Vec<(Interval, u64)>,
}

impl Times {
    pub(super) fn new(redis: redis::Connection, clock: &Clock) -> Self {
        Self {
            redis,
            clock: clock.clone(),
            readings: Vec::new(),
        }
    }

    pub(super) fn read_clock(&mut self) -> u64 {
        let start = Instant::now();
        let (seconds, micros): (u64, u64) = redis::cmd("TIME").query(&mut self.redis).unwrap();
        let end = Instant::now();
        let now_ms = seconds * 1_000 + micros / 1_000 + self.clock.ahead_ms();
        self.readings.push((Interval { start, end }, now_ms));
        now_ms
    }

    /// Advances the clock, which nothing else may use meanwhile.
    pub(super) fn advance(&mut self, by: Duration) {
        self.read_clock();
        self.clock.advance(by);
        self.read_clock();
    }

    pub(super) async fn read_clock_for(&mut self, over: Duration) {
        let end_ms = self.read_clock() + u64::try_from(over.as_millis()).unwrap();
        while self.read_clock() < end_ms {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Records the end of each life (thread incarnation) that may have reached `max_age`. Returns the number of ends.
    pub(super) fn note_ends(&mut self, clients: &Clients, max_age: Duration) -> usize {
        self.read_clock();
        let mut ended = 0;
        for history in clients.histories() {
            let writes = history.writes.lock().unwrap();
            let first = writes.iter().filter(|write| write.stamp.version == 1);
            for end in first.filter_map(|write| self.end(&write.at, max_age)) {
                history.happened(end, Event::End);
                ended += 1;
            }
        }
        ended
    }

    /// Returns the interval in which a life that began during `begin` reached `max_age`, or `None` if it is younger.
    fn end(&self, begin: &Interval, max_age: Duration) -> Option<Interval> {
        let max_age_ms = u64::try_from(max_age.as_millis()).unwrap();
        let earliest_ms = self.last(|at, _| at.end <= begin.start)?.1 + max_age_ms - SLACK_MS;
        let latest_ms = self.first(|at, _| at.start >= begin.end)?.1 + max_age_ms + SLACK_MS;
        let before = self.last(|_, now_ms| now_ms < earliest_ms)?.0;
        let (now, now_ms) = *self.readings.last()?;
        let after = self.first(|_, now_ms| now_ms > latest_ms);
        (now_ms >= earliest_ms).then_some(Interval {
            start: before.start,
            end: after.map_or(now.end, |(after, _)| after.end),
        })
    }

    fn last(&self, matches: impl Fn(&Interval, u64) -> bool) -> Option<(Interval, u64)> {
        let mut readings = self.readings.iter().rev().copied();
        readings.find(|(at, now_ms)| matches(at, *now_ms))
    }

    fn first(&self, matches: impl Fn(&Interval, u64) -> bool) -> Option<(Interval, u64)> {
        let mut readings = self.readings.iter().copied();
        readings.find(|(at, now_ms)| matches(at, *now_ms))
    }
}
