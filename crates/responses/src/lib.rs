//! Runs model responses, and the calls that models make to this service's tools.
//!
//! Each response runs in its own task, called its driver. The driver writes each model answer and each call to the
//! response's journal. The effect of a call is written together with its journal entry in one atomic step. Another
//! driver can therefore resume the response at any time without repeating a call's effect.

mod catalog;
mod compaction;
mod counting;
mod driver;
mod earlier;
mod events;
mod media;
mod running;
mod service;
mod shared;
mod standalone;
mod stream;
mod values;

pub use catalog::{Catalog, CatalogEntry};
pub use compaction::{Compaction, WholeConversation};
pub use media::MediaAt;
pub use service::ResponseService;
pub use shared::{ResponseSettings, ResponseStores};
pub use stream::{ResponseStream, SoFar, StreamItem};
pub use values::dialogue::items_of_message;
pub use values::error::ResponseError;
pub use values::event::{CallEvent, CallKind, ResponseEvent, TextKind, TextRef};
pub use values::items::{item_id_of, response_item_id, response_of_item, upstream_id_of};
pub use values::message_window::MessageWindow;
pub use values::model::{
    AnswerPart, CompactedPrompt, CustomTool, Finish, Function, MediaCarrier, Model, ModelAnswer,
    Parameters, Piece, Question, ToolChoice, UpstreamError, content_of,
};
pub use values::observer::{ResponseObserver, ResponseRefusal, UpstreamOutcome};
pub use values::request::{
    ContinuedItems, FollowedResponse, InputItem, Protocol, ResponseContext, ResponseRequest,
    StateTools,
};
pub use values::response::{EndedResponse, MissingThread, NewResponse, ResponseState};
pub use values::stateless::{
    GeneratedImage, NoStatelessTools, SearchResult, StatelessError, StatelessServer, StatelessSet,
    StatelessTools, without_image,
};
