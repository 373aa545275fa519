//! Sends pings, and derives from the pongs when messages were sent and received.
//!
//! Both sides process messages in order. A message that follows a pong was therefore sent after the ping. A client that
//! answers a ping has received everything that was sent before the ping. The protocol has no other sign of how long a
//! request was in flight, or of whether an answer arrived before the client gave up.

use std::collections::VecDeque;

use tokio::time::Instant;

use threadkeep_service::Receipt;

/// Maximum number of unanswered pings to remember. The oldest ping is forgotten first.
const UNANSWERED_MAX: usize = 128;
/// Maximum number of answers to remember until a pong confirms them.
const UNCONFIRMED_MAX: usize = 1_024;

#[derive(Debug)]
pub(super) struct Pings {
    next: u64,
    last_sent: Instant,
    sent_after: Instant,
    unanswered: VecDeque<(u64, Instant)>,
    /// Receipts for unconfirmed answers, each with the sequence number of the first ping after the answer.
    unconfirmed: VecDeque<(u64, Receipt)>,
}

impl Pings {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            next: 0,
            last_sent: now,
            sent_after: now,
            unanswered: VecDeque::new(),
            unconfirmed: VecDeque::new(),
        }
    }

    /// Records an answer, which the pong to the next ping will confirm.
    pub(super) fn record_answer(&mut self, receipt: Receipt) {
        if self.unconfirmed.len() == UNCONFIRMED_MAX {
            self.unconfirmed.pop_front();
        }
        self.unconfirmed.push_back((self.next, receipt));
    }

    pub(super) fn has_unconfirmed(&self) -> bool {
        let last = self.unconfirmed.back();
        last.is_some_and(|(number, _)| *number == self.next)
    }

    pub(super) fn send(&mut self) -> [u8; 8] {
        let number = self.next;
        self.next += 1;
        self.last_sent = Instant::now();
        if self.unanswered.len() == UNANSWERED_MAX {
            self.unanswered.pop_front();
        }
        self.unanswered.push_back((number, self.last_sent));
        number.to_be_bytes()
    }

    /// Returns the answers that `pong` confirms. A pong may answer several pings, or no ping (RFC 6455, section 5.5.3).
    pub(super) fn confirm(&mut self, pong: &[u8]) -> impl Iterator<Item = Receipt> {
        let index = self
            .unanswered
            .iter()
            .position(|(number, _)| number.to_be_bytes() == pong);
        let mut received = 0;
        if let Some(index) = index {
            let (number, sent) = self.unanswered[index];
            self.unanswered.drain(..=index);
            self.sent_after = sent;
            received = self
                .unconfirmed
                .partition_point(|(first, _)| *first <= number);
        }
        self.unconfirmed
            .drain(..received)
            .map(|(_, receipt)| receipt)
    }

    pub(super) fn last_sent(&self) -> Instant {
        self.last_sent
    }

    /// Returns the earliest time at which the client could have sent the latest message.
    pub(super) fn sent_after(&self) -> Instant {
        self.sent_after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(pings: &mut Pings, pong: &[u8]) -> usize {
        pings.confirm(pong).count()
    }

    #[test]
    fn messages_after_a_pong_were_sent_after_its_ping() {
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
    fn the_oldest_unanswered_pings_are_forgotten() {
        let mut pings = Pings::new();

        let first = pings.send();
        let begun = pings.sent_after();
        for _ in 0..UNANSWERED_MAX {
            pings.send();
        }
        answer(&mut pings, &first);

        assert_eq!(pings.unanswered.len(), UNANSWERED_MAX);
        assert_eq!(pings.sent_after(), begun);
    }
}
