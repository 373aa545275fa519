//! Pings, and what their pongs prove.
//!
//! Both sides read messages in the order in which they were sent. So a message that follows a pong was sent after its
//! ping, and a client that answers a ping has received everything sent before it. Nothing else tells how long a
//! request was in flight, or whether an answer has arrived while the client still waited for it.

use std::collections::VecDeque;

use tokio::time::Instant;

use threadkeep_service::Receipt;

/// Unanswered pings that are remembered. Older ones prove nothing.
const MOST_UNANSWERED: usize = 128;
/// Answers that are remembered until a pong proves that the client has them.
const MOST_GIVEN: usize = 1_024;

/// The pings of a connection, by number.
#[derive(Debug)]
pub(super) struct Pings {
    next: u64,
    last_sent: Instant,
    sent_after: Instant,
    unanswered: VecDeque<(u64, Instant)>,
    /// Each with the number of the first ping that was sent after it.
    given: VecDeque<(u64, Receipt)>,
}

impl Pings {
    /// The pings of a new connection.
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            next: 0,
            last_sent: now,
            sent_after: now,
            unanswered: VecDeque::new(),
            given: VecDeque::new(),
        }
    }

    /// Notes an answer that the next ping will cover.
    pub(super) fn give(&mut self, receipt: Receipt) {
        if self.given.len() == MOST_GIVEN {
            self.given.pop_front();
        }
        self.given.push_back((self.next, receipt));
    }

    /// Whether an answer was sent since the last ping.
    pub(super) fn has_given(&self) -> bool {
        let last = self.given.back();
        last.is_some_and(|(number, _)| *number == self.next)
    }

    /// The payload of the next ping.
    pub(super) fn send(&mut self) -> [u8; 8] {
        let number = self.next;
        self.next += 1;
        self.last_sent = Instant::now();
        if self.unanswered.len() == MOST_UNANSWERED {
            self.unanswered.pop_front();
        }
        self.unanswered.push_back((number, self.last_sent));
        number.to_be_bytes()
    }

    /// The answers that a pong proves to have arrived. A pong may answer several pings, or none (RFC 6455, section
    /// 5.5.3).
    pub(super) fn answered(&mut self, pong: &[u8]) -> impl Iterator<Item = Receipt> {
        let index = self
            .unanswered
            .iter()
            .position(|(number, _)| number.to_be_bytes() == pong);
        let mut received = 0;
        if let Some(index) = index {
            let (number, sent) = self.unanswered[index];
            self.unanswered.drain(..=index);
            self.sent_after = sent;
            received = self.given.partition_point(|(first, _)| *first <= number);
        }
        self.given.drain(..received).map(|(_, receipt)| receipt)
    }

    /// When the last one was sent.
    pub(super) fn last_sent(&self) -> Instant {
        self.last_sent
    }

    /// A moment before the client sent what arrives now.
    pub(super) fn sent_after(&self) -> Instant {
        self.sent_after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much was received.
    fn answer(pings: &mut Pings, pong: &[u8]) -> usize {
        pings.answered(pong).count()
    }

    #[test]
    fn what_comes_after_a_pong_was_sent_after_its_ping() {
        let mut pings = Pings::new();
        let begun = pings.sent_after();

        let first = pings.send();
        let sent = pings.last_sent();
        let second = pings.send();
        answer(&mut pings, b"unasked");
        answer(&mut pings, &7_u64.to_be_bytes());
        assert_eq!(pings.sent_after(), begun);
        answer(&mut pings, &first);
        assert_eq!(pings.sent_after(), sent);
        answer(&mut pings, &second);
        answer(&mut pings, &first);
        assert_eq!(pings.sent_after(), pings.last_sent());
        assert!(pings.unanswered.is_empty());
    }

    #[test]
    fn pings_that_nobody_answers_are_forgotten() {
        let mut pings = Pings::new();

        let first = pings.send();
        let begun = pings.sent_after();
        for _ in 0..MOST_UNANSWERED {
            pings.send();
        }
        answer(&mut pings, &first);

        assert_eq!(pings.unanswered.len(), MOST_UNANSWERED);
        assert_eq!(pings.sent_after(), begun);
    }
}
