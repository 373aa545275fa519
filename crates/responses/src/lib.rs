//! Responses of models that call tools of this service: the loop.
//!
//! A turn runs in a task of its own, the driver. Each answer of the model and each call is an entry of the turn's journal, and
//! the effect of a call and its entry are one step of the store, so another driver can go on with it at any moment.

mod apart;
mod broadcast;
mod catalog;
mod closing;
mod compaction;
mod counting;
mod course;
mod dialogue;
mod driver;
mod earlier;
mod entry;
mod error;
mod event;
mod executed;
mod items;
mod listening;
mod media;
mod message_window;
mod model;
mod observer;
mod passing;
mod rehearsal;
mod request;
mod run;
mod running;
mod stateless;
mod telling;
mod turns;

pub use catalog::{Catalog, CatalogEntry};
pub use compaction::{Compaction, WholeConversation};
pub use dialogue::items_of_message;
pub use error::TurnError;
pub use event::{CallEvent, CallKind, TextKind, TurnEvent};
pub use items::turn_item_id;
pub use items::{item_id_of, turn_of_item, upstream_id_of};
pub use listening::{SoFar, StreamItem, TurnStream};
pub use media::MediaAt;
pub use message_window::MessageWindow;
pub use model::content_of;
pub use model::{
    AnswerPart, CompactedPrompt, CustomTool, Finish, Function, MediaPlace, Model, ModelAnswer,
    Parameters, Piece, Question, ToolChoice, UpstreamError,
};
pub use observer::{TurnObserver, TurnRefusal, UpstreamOutcome};
pub use request::{
    ContinuedItems, Door, FollowedTurn, InputItem, StateTools, TurnContext, TurnRequest,
};
pub use stateless::without_image;
pub use stateless::{
    GeneratedImage, NoStatelessTools, SearchResult, StatelessError, StatelessServer, StatelessSet,
    StatelessTools,
};
pub use turns::{
    EndedTurn, MissingThread, ModelTurns, NewTurn, TurnState, TurnStores, TurnsSettings,
};
