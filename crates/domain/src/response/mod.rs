//! Responses: turns of a model in a conversation.

mod carried;
mod compaction;
mod id;
mod limits;
mod outcome;
mod prompt;
mod usage;
mod window;

pub use carried::{carried, carry, is_carried};
pub use compaction::{compaction_item, is_compaction, is_foreign_compaction, readable_item};
pub use id::{ResponseId, ResponseIdError};
pub use limits::TurnLimits;
pub use outcome::{Failure, FailureCode, Incomplete, Outcome, Status};
pub use prompt::{CallForm, PromptItem, output_without_call, prompt_of};
pub use usage::Usage;
pub use window::{Window, is_user_message};
