//! Answers to writes that may be repeats.

/// The answer to a write, or to its first run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered<T> {
    /// The answer.
    pub answer: T,
    /// Whether this is the answer to an earlier write with the same idempotency key.
    pub replayed: bool,
}

impl<T> Answered<T> {
    /// The answer to a write that was done now.
    pub fn fresh(answer: T) -> Self {
        Self {
            answer,
            replayed: false,
        }
    }

    /// The answer to an earlier write.
    pub fn replay(answer: T) -> Self {
        Self {
            answer,
            replayed: true,
        }
    }
}
