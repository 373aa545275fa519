//! Conversation state as a service.

#![cfg_attr(
    not(feature = "server"),
    allow(
        dead_code,
        unused_imports,
        reason = "the server uses more of these modules than the library; its build finds what is unused"
    )
)]

pub mod actix;
mod alarm;
#[cfg(feature = "server")]
pub mod app;
#[cfg(feature = "server")]
pub mod cli;
#[cfg(feature = "server")]
pub mod config;
pub mod domain;
pub mod events;
#[cfg(test)]
mod fuzzing;
#[cfg(feature = "server")]
pub mod http;
pub mod identity;
#[cfg(feature = "server")]
pub mod protocols;
pub mod service;
pub mod store;
#[cfg(feature = "server")]
pub mod telemetry;
pub mod web;
#[cfg(feature = "server")]
pub mod webhooks;
