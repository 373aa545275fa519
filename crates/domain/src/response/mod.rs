//! Defines responses. A response is the work of a model on one request.

mod carried;
mod compaction;
pub mod floor;
pub mod held;
mod id;
mod item;
mod limits;
mod outcome;
mod prompt;
pub mod steps;
mod usage;
mod window;

pub use carried::{carried, carry, is_carried};
pub use compaction::{compaction_item, is_compaction, is_foreign_compaction, readable_item};
pub use id::{ResponseId, ResponseIdError};
pub use item::{CallForm, CallResult, Item, ItemCall, ItemKind};
pub use limits::ResponseLimits;
pub use outcome::{Failure, FailureCode, Incomplete, Outcome, Status};
pub use prompt::{PromptItem, output_without_call, prompt_of};
pub use usage::Usage;
pub use window::{Window, is_user_message};
