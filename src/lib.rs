//! Conversation state as a service.

pub mod actix;
mod alarm;
pub mod app;
pub mod cli;
pub mod config;
pub mod domain;
pub mod events;
#[cfg(test)]
mod fuzzing;
pub mod http;
pub mod identity;
pub mod protocols;
pub mod service;
pub mod store;
pub mod telemetry;
pub mod web;
pub mod webhooks;
