/// The answer to a write that takes an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered<T> {
    /// The answer.
    pub answer: T,
    /// Whether the answer was replayed for the idempotency key.
    pub replayed: bool,
}

impl<T> Answered<T> {
    /// Wraps the answer to a new write.
    pub fn fresh(answer: T) -> Self {
        Self {
            answer,
            replayed: false,
        }
    }

    /// Wraps the answer to an earlier write.
    pub fn replay(answer: T) -> Self {
        Self {
            answer,
            replayed: true,
        }
    }
}
