//! Values and interfaces that drivers (which run responses) and readers of responses share: requests, model answers,
//! items, events and outcomes. Performs no I/O.

pub(crate) mod call;
pub(crate) mod course;
pub(crate) mod dialogue;
pub(crate) mod entry;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod items;
pub(crate) mod message_window;
pub(crate) mod model;
pub(crate) mod observer;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod stateless;
pub(crate) mod stored;
