//! Defines effects. An effect is the record of one tool call.
//!
//! The ledger of a thread records when a call begins and how it ends. A process that resumes the work of another process
//! therefore knows which calls have run, and which may have run.

mod effect;
mod fence;
mod ledger;
mod names;
mod refusal;
mod request;

pub use effect::{Effect, EffectImage, EffectState, OUTCOME_BYTES_MAX, Outcome, Settled};
pub use fence::{Fence, FenceError, RunKey};
pub use ledger::{EFFECTS_MAX, Effects, OPEN_MAX, RESULTS_BYTES_MAX};
pub use names::{EffectId, EffectNameError, InputHash, ToolName};
pub use refusal::EffectRefusal;
pub use request::{BeginEffect, SettleEffect};
