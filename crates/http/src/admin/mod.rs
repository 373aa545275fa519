//! Probes, figures, webhook endpoints, API keys and settings, for operators.

pub(super) mod api_keys;
pub(super) mod probes;
pub(super) mod readiness;
pub(super) mod settings;
pub(super) mod stats;
mod stats_object;
pub(super) mod webhook_body;
mod webhook_error;
mod webhook_object;
pub(super) mod webhooks;
