use super::{EFFECTS_MAX, OPEN_MAX, OUTCOME_BYTES_MAX, RESULTS_BYTES_MAX};

/// The reason why the ledger refused a request about an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EffectRefusal {
    /// The ledger has no effect with this id.
    #[error("the tool call does not exist")]
    NotFound,
    /// The id belongs to an effect with a different tool or hash.
    #[error("the id belongs to a tool call with a different tool or different arguments")]
    Reused,
    /// The fence is not that of the last attempt, or the request has no fence and the current turn runs the tool.
    #[error("the request lacks the fence of attempt {attempt}, the last one")]
    Lost {
        /// The last attempt.
        attempt: u32,
    },
    /// The effect was settled with a different value.
    #[error("attempt {attempt} was settled with a different value")]
    Settled {
        /// The last attempt.
        attempt: u32,
    },
    /// The request has neither a fence nor the token of a turn.
    #[error("the request needs the fence of the attempt, or the token of the turn")]
    NoFence,
    /// The result or the error is too large.
    #[error("a result or an error may have at most {OUTCOME_BYTES_MAX} bytes")]
    TooLarge,
    /// The ledger is full, and the server may not remove enough settled effects.
    #[error(
        "a thread may have {EFFECTS_MAX} tool calls, {OPEN_MAX} of them open, and {RESULTS_BYTES_MAX} bytes of \
         results; settle open calls, or release the turn as complete, so that the server can remove settled calls"
    )]
    TooMany,
}
