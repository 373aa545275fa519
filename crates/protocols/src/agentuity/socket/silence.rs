use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

use super::limits::SocketTiming;
use super::responder::Responder;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Ping,
    /// The client was silent for too long.
    Silent,
    Stuck,
}

/// Decides when to ping a client, and when to disconnect it.
#[derive(Debug)]
pub(super) struct Silence {
    timing: SocketTiming,
    last_activity: Instant,
    alarm: Pin<Box<Sleep>>,
}

impl Silence {
    pub(super) fn new(timing: SocketTiming) -> Self {
        let last_activity = Instant::now();
        Self {
            timing,
            last_activity,
            alarm: Box::pin(sleep_until(last_activity + timing.ping)),
        }
    }

    /// Records that a message arrived, or that the server has paused reading.
    pub(super) fn record_activity(&mut self) {
        self.last_activity = Instant::now();
    }

    /// Waits until an action is due. Cancel-safe.
    pub(super) async fn due(&mut self, responder: &Responder) -> Due {
        loop {
            let (due, at) = self.next(responder);
            if at <= Instant::now() {
                return due;
            }
            // does not move the timer to a later time, because the loop checks the time again when the timer fires
            if self.alarm.is_elapsed() || at < self.alarm.deadline() {
                self.alarm.as_mut().reset(at);
            }
            self.alarm.as_mut().await;
        }
    }

    fn next(&self, responder: &Responder) -> (Due, Instant) {
        let ping = responder.pings.borrow().last_sent() + self.timing.ping;
        let silent = self.last_activity + self.timing.silence;
        let first = if silent < ping {
            (Due::Silent, silent)
        } else {
            (Due::Ping, ping)
        };
        let stuck = responder.outbox.stuck_since();
        let stuck = stuck.map(|since| since + self.timing.stuck);
        match stuck.filter(|stuck| *stuck < first.1) {
            Some(stuck) => (Due::Stuck, stuck),
            None => first,
        }
    }
}
