use super::{EFFECTS_MAX, OPEN_MAX, OUTCOME_BYTES_MAX, RESULTS_BYTES_MAX};

/// The reason why the ledger refused a request about an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EffectRefusal {
    /// The ledger has no effect with this id.
    #[error("the effect does not exist")]
    NotFound,
    /// The id belongs to an effect with a different tool or hash.
    #[error("the id belongs to an effect with another tool or other arguments")]
    Reused,
    /// The fence is not that of the last attempt.
    #[error("attempt {attempt} has another fence")]
    Lost {
        /// The last attempt.
        attempt: u32,
    },
    /// The effect was settled with a different value.
    #[error("attempt {attempt} was settled with another value")]
    Settled {
        /// The last attempt.
        attempt: u32,
    },
    /// The request has neither a fence nor the token of a turn.
    #[error("a fence or the token of the turn is missing")]
    NoFence,
    /// The result or the error is too large.
    #[error("a result or an error may have at most {OUTCOME_BYTES_MAX} bytes")]
    TooLarge,
    /// The ledger is full, and the server may not remove enough settled effects.
    #[error(
        "a thread may have {EFFECTS_MAX} effects, of which {OPEN_MAX} are open, and {RESULTS_BYTES_MAX} bytes of results; \
         settle effects, or release the turn so that settled ones can make room"
    )]
    TooMany,
}
