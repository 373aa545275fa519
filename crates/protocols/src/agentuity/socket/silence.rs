use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

use super::answering::Desk;
use super::limits::SocketTiming;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Ping,
    /// The connection is lost.
    Gone,
    Stuck,
}

/// Measures how long a client has been silent.
#[derive(Debug)]
pub(super) struct Silence {
    timing: SocketTiming,
    heard: Instant,
    alarm: Pin<Box<Sleep>>,
}

impl Silence {
    pub(super) fn new(timing: SocketTiming) -> Self {
        let heard = Instant::now();
        Self {
            timing,
            heard,
            alarm: Box::pin(sleep_until(heard + timing.ping)),
        }
    }

    /// Records that a message arrived, or that the server has paused reading.
    pub(super) fn heard(&mut self) {
        self.heard = Instant::now();
    }

    /// Waits until an action is due. Cancel-safe.
    pub(super) async fn due(&mut self, desk: &Desk) -> Due {
        loop {
            let (due, at) = self.next(desk);
            if at <= Instant::now() {
                return due;
            }
            // moves the timer only if necessary, because a message usually arrives before the timer fires
            if self.alarm.is_elapsed() || at < self.alarm.deadline() {
                self.alarm.as_mut().reset(at);
            }
            self.alarm.as_mut().await;
        }
    }

    fn next(&self, desk: &Desk) -> (Due, Instant) {
        let ping = desk.pings.borrow().last_sent() + self.timing.ping;
        let gone = self.heard + self.timing.silence;
        let first = if gone < ping {
            (Due::Gone, gone)
        } else {
            (Due::Ping, ping)
        };
        let stuck = desk.outbox.stuck_since();
        let stuck = stuck.map(|since| since + self.timing.stuck);
        match stuck.filter(|stuck| *stuck < first.1) {
            Some(stuck) => (Due::Stuck, stuck),
            None => first,
        }
    }
}
