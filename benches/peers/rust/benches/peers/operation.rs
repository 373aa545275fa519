//! The requests to every peer.

use super::content::{Content, key};
use super::request::{message, value};

/// A kind of request, a row of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    ReadKeys,
    Merge,
    /// Keeps this many messages.
    Push(usize),
    ReadMessages,
    ReadLarge,
}

/// Messages of a short conversation.
const FEW: usize = 50;

impl Operation {
    pub(super) const ALL: [Self; 6] = [
        Self::ReadKeys,
        Self::Merge,
        Self::Push(FEW),
        Self::Push(1_000),
        Self::ReadMessages,
        Self::ReadLarge,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ReadKeys => "Read 10 keys of 100 bytes",
            Self::Merge => "Merge one key of 100 bytes",
            Self::Push(FEW) => "Push 200 bytes, window 50",
            Self::Push(_) => "Push 200 bytes, window 1,000",
            Self::ReadMessages => "Read 50 messages of 200 bytes",
            Self::ReadLarge => "Read 256 KiB",
        }
    }

    /// States that its requests go to in turn.
    pub(super) fn states(self) -> usize {
        match self {
            Self::ReadKeys | Self::Merge | Self::Push(FEW) | Self::ReadMessages => 1_000,
            // as much in Redis for each peer as all others together
            Self::Push(_) | Self::ReadLarge => 100,
        }
    }

    /// The content of the state of that number before the first request.
    pub(super) fn start(self, n: usize) -> Content {
        match self {
            Self::ReadKeys | Self::Merge => Content::keys(10, |place| value(n + place)),
            Self::Push(window) => Content::messages(window, n),
            Self::ReadMessages => Content::messages(FEW, n),
            Self::ReadLarge => Content::keys(64, |place| format!(r#""{:0>4094}""#, n + place)),
        }
    }

    /// The content of the state of that number after one request with that number.
    pub(super) fn apply(self, content: &mut Content, n: usize) {
        match (self, content) {
            (Self::Merge, Content::Keys(keys)) => keys[n % 10] = (key(n % 10), value(n)),
            (Self::Push(window), Content::Messages(messages)) => {
                messages.push(message(n));
                messages.drain(..messages.len().saturating_sub(window));
            }
            _ => {}
        }
    }
}
