use super::{EffectId, EffectRefusal, Fence, InputHash, RunKey, ToolName};
use crate::{Heap, Json};

/// Maximum size of a result or an error in bytes, as compact JSON.
pub const OUTCOME_BYTES_MAX: u64 = 65_536;

/// How an effect ended. Both values are any JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The tool ran, and returned this value.
    Result(Json),
    /// The tool failed with this error. Another attempt may run it again.
    Error(Json),
}

impl Outcome {
    /// Returns the value.
    #[must_use]
    pub fn value(&self) -> &Json {
        match self {
            Self::Result(value) | Self::Error(value) => value,
        }
    }

    /// Returns the state of an effect with this outcome.
    #[must_use]
    pub fn state(&self) -> EffectState {
        match self {
            Self::Result(_) => EffectState::Done,
            Self::Error(_) => EffectState::Failed,
        }
    }

    /// Returns the number of bytes that count toward the limit of the ledger.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.value().as_str().len() as u64
    }

    /// Fails if the value is larger than 64 KiB.
    pub fn check(&self) -> Result<(), EffectRefusal> {
        match self.size_bytes() > OUTCOME_BYTES_MAX {
            true => Err(EffectRefusal::TooLarge),
            false => Ok(()),
        }
    }
}

/// The state of an effect, as its reader sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectState {
    /// The caller may run the tool, and must settle the effect afterwards.
    Granted,
    /// The current turn runs the tool.
    Running,
    /// The turn that began the last attempt was released, or a later turn was granted, before the effect was settled:
    /// the tool may have run.
    InDoubt,
    /// The effect has a result.
    Done,
    /// The effect has an error.
    Failed,
}

impl EffectState {
    /// The name of each state.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("granted", Self::Granted),
        ("running", Self::Running),
        ("in_doubt", Self::InDoubt),
        ("done", Self::Done),
        ("failed", Self::Failed),
    ];

    /// Returns the name of the state.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        let mut names = Self::NAMES.into_iter();
        names
            .find(|(_, state)| *state == self)
            .map_or("", |(name, _)| name)
    }
}

/// An effect, as a caller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The client's id.
    pub id: EffectId,
    /// The state.
    pub state: EffectState,
    /// The tool.
    pub tool: ToolName,
    /// The hash of the arguments.
    pub hash: InputHash,
    /// The number of the last attempt, starting at 1.
    pub attempt: u32,
    /// The idempotency key, for the system that the tool calls.
    pub key: RunKey,
    /// The number of the turn that began the last attempt; 0 if that was a turn of the thread that a fork copied.
    pub turn: u32,
    /// When the last attempt began, in Unix milliseconds according to the store's clock.
    pub begun_ms: u64,
    /// How the effect ended, unless it is open or the reader did not ask for it.
    pub outcome: Option<Outcome>,
    /// The fence of the last attempt, if the state is [`EffectState::Granted`].
    pub fence: Option<Fence>,
    /// The position in the ledger. Later effects have higher positions.
    pub position: u64,
}

/// An effect after it was settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The effect.
    pub effect: Effect,
    /// Whether an earlier request settled the effect with the same value.
    pub repeated: bool,
}

/// An effect in an image of a thread. An image has no fences, because a fence gives the right to settle an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectImage {
    /// The client's id.
    pub id: EffectId,
    /// The tool.
    pub tool: ToolName,
    /// The hash of the arguments.
    pub hash: InputHash,
    /// The number of the last attempt.
    pub attempt: u32,
    /// The idempotency key.
    pub key: RunKey,
    /// The number of the turn that began the last attempt.
    pub turn: u32,
    /// When the last attempt began, in Unix milliseconds.
    pub begun_ms: u64,
    /// How the effect ended, unless it is open.
    pub outcome: Option<Outcome>,
}

impl Heap for Outcome {
    fn heap_bytes(&self) -> u64 {
        self.value().heap_bytes()
    }
}
