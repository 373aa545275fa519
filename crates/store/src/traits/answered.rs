/// The answer to a write that takes an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered<T> {
    /// The answer.
    pub answer: T,
    /// True if an earlier answer with the same idempotency key was replayed.
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
