use super::content::{Content, key};
use super::floor::Answer;
use super::request::{message, value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Read(Size, Cache),
    /// A conditional read of 256 KiB by a client that already has the current content.
    ReadUnchanged,
    Merge,
    /// Appends a message, and keeps at most this many of the newest messages.
    Push(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// 10 keys of 100 bytes.
    Keys,
    /// 50 messages of 200 bytes.
    Messages,
    /// 256 KiB.
    Large,
}

/// Whether threadkeep's read cache is used. Other peers do not have a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cache {
    /// Cached, with the default settings.
    Warm,
    /// Not cached, because the cache is off.
    Cold,
}

/// Number of messages in a short conversation.
const SHORT_WINDOW: usize = 50;

impl Operation {
    pub(super) const ALL: [Self; 10] = [
        Self::Read(Size::Keys, Cache::Warm),
        Self::Read(Size::Keys, Cache::Cold),
        Self::Read(Size::Messages, Cache::Warm),
        Self::Read(Size::Messages, Cache::Cold),
        Self::Read(Size::Large, Cache::Warm),
        Self::Read(Size::Large, Cache::Cold),
        Self::ReadUnchanged,
        Self::Merge,
        Self::Push(SHORT_WINDOW),
        Self::Push(1_000),
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Read(Size::Keys, Cache::Warm) => "Read 10 keys of 100 bytes, warm",
            Self::Read(Size::Keys, Cache::Cold) => "Read 10 keys of 100 bytes, cold",
            Self::Read(Size::Messages, Cache::Warm) => "Read 50 messages of 200 bytes, warm",
            Self::Read(Size::Messages, Cache::Cold) => "Read 50 messages of 200 bytes, cold",
            Self::Read(Size::Large, Cache::Warm) => "Read 256 KiB, warm",
            Self::Read(Size::Large, Cache::Cold) => "Read 256 KiB, cold",
            Self::ReadUnchanged => "Read 256 KiB, conditional (304)",
            Self::Merge => "Merge one key of 100 bytes",
            Self::Push(SHORT_WINDOW) => "Push 200 bytes, window 50",
            Self::Push(_) => "Push 200 bytes, window 1,000",
        }
    }

    pub(super) fn word(self) -> String {
        format!("{self:?}").replace(|c: char| !c.is_ascii_alphanumeric(), "")
    }

    pub(super) fn is_read(self) -> bool {
        matches!(self, Self::Read(..) | Self::ReadUnchanged)
    }

    pub(super) fn has_large_answer(self) -> bool {
        matches!(self, Self::Read(Size::Large, _))
    }

    /// Returns the response of the floor (a handler that does no work): one of about the same size as the operation's.
    pub(super) fn floor(self) -> Answer {
        if self.has_large_answer() {
            Answer::Large
        } else {
            Answer::Small
        }
    }

    pub(super) fn states(self) -> usize {
        match self {
            Self::Read(Size::Keys | Size::Messages, _) | Self::Merge | Self::Push(SHORT_WINDOW) => {
                1_000
            }
            // fewer states, because each one is large
            Self::Push(_) | Self::Read(Size::Large, _) | Self::ReadUnchanged => 100,
        }
    }

    pub(super) fn start(self, n: usize) -> Content {
        match self {
            Self::Read(Size::Keys, _) | Self::Merge => Content::keys(10, |index| value(n + index)),
            Self::Read(Size::Messages, _) => Content::messages(SHORT_WINDOW, n),
            Self::Read(Size::Large, _) | Self::ReadUnchanged => {
                Content::keys(64, |index| format!(r#""{:0>4094}""#, n + index))
            }
            Self::Push(window) => Content::messages(window, n),
        }
    }

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

    pub(super) fn read(self) -> Self {
        match self {
            Self::Read(..) => self,
            Self::ReadUnchanged => Self::Read(Size::Large, Cache::Warm),
            Self::Merge => Self::Read(Size::Keys, Cache::Warm),
            Self::Push(_) => Self::Read(Size::Messages, Cache::Warm),
        }
    }
}
