//! Watches whether a client is still alive.

use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

use super::answering::Desk;
use super::limits::SocketTiming;

/// The reaction to a client that shows no sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// It is to be asked.
    Ping,
    /// It has gone.
    Gone,
    /// It does not read its messages.
    Stuck,
}

/// Measures the silence of a client.
#[derive(Debug)]
pub(super) struct Silence {
    timing: SocketTiming,
    heard: Instant,
    alarm: Pin<Box<Sleep>>,
}

impl Silence {
    /// Begins now.
    pub(super) fn new(timing: SocketTiming) -> Self {
        let heard = Instant::now();
        Self {
            timing,
            heard,
            alarm: Box::pin(sleep_until(heard + timing.ping)),
        }
    }

    /// Notes that something arrived, or that the server itself does not read at the moment.
    pub(super) fn heard(&mut self) {
        self.heard = Instant::now();
    }

    /// Waits until something is due. It is safe to drop the future and call this again.
    pub(super) async fn due(&mut self, desk: &Desk) -> Due {
        loop {
            let (due, at) = self.next(desk);
            if at <= Instant::now() {
                return due;
            }
            // the timer is moved lazily: most of the time, a message arrives before it fires
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
