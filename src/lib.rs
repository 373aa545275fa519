//! Conversation state as a service.

pub mod domain;
pub mod identity;
pub mod service;
pub mod store;
