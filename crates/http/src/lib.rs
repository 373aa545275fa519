//! The HTTP API, version 1. Each handler extracts its input, calls the service once, and wraps the result.

mod admin;
mod answer;
mod codes;
mod configure;
mod connection_state;
mod envelope;
mod events;
mod fallback;
#[cfg(test)]
mod fuzz;
mod kv;
mod methods;
mod openai_paths;
mod openapi;
mod problems;
mod request;
mod routes;
mod schemas;
mod scopes;
mod threads;
mod tools;

use std::borrow::Cow;
use std::sync::Arc;

use threadkeep_domain::ReservedKeys;
use threadkeep_events::Events;
use threadkeep_identity::{ApiKeys, Behalf, Identity};
use threadkeep_service::tools::Toolbox;
use threadkeep_service::{
    ArchiveService, CheckpointService, EffectService, ImageService, NamespaceService, OwnerService,
    ScopeService, ThreadService, TurnService,
};
use threadkeep_stats::Stats;
use threadkeep_webhooks::Webhooks;

pub use admin::readiness::Readiness;
pub use admin::settings::SettingObject;
pub use answer::compressor::Compressor;
pub use answer::gzip::{Encoded, VARY_BY_ENCODING, gzip};
pub use answer::json::json_text;
pub use answer::memory::AnswerMemory;
pub use answer::negotiation::{EVENT_STREAM, accepts_json};
pub use answer::receipt::{mark_answer_of_replay, mark_replay};
pub use answer::streamed::{COMMENT, cut_at_error, streamed};
pub use connection_state::ConnectionState;
pub use envelope::envelope;
pub use kv::content::{EntryContent, entry_body, entry_head};
pub use methods::{post_only, read_only};
pub use openai_paths::is_openai_path;
pub use openapi::openapi_json;
pub use request::back_end::{Audited, key_for, no_key, own};
pub use request::body::BodyAlarm;
pub use request::body::{Body, is_endless};
pub use request::body_memory::BodyMemory;
pub use request::conditions::{IDEMPOTENCY_KEY, Repeatable, idempotency, turn};
pub use request::context::About;
pub use request::context::session_of;
pub use request::decode::{decode_parameter, parameters, path_part};
pub use request::head::refuse as refuse_head;
pub use request::json::{
    BodyFault, RawJson, RawObject, ThreadTtl, optional_body_object, read, read_value,
};
pub use request::json_body::text_of;
pub use request::query::{Parameters, Query, set_once, whole};
pub use request::rate_subject::count_by_address;
pub use request::rights::missing;

#[derive(Debug, Clone)]
pub struct Api {
    pub service: ThreadService,
    pub turns: TurnService,
    pub effects: EffectService,
    pub checkpoints: CheckpointService,
    /// Keys, tasks and histories.
    pub scopes: ScopeService,
    /// Whole threads: forks, exports and imports.
    pub images: ImageService,
    pub owners: OwnerService,
    pub archives: ArchiveService,
    /// Key-value entries, which outlive threads.
    pub namespaces: NamespaceService,
    /// State keys that only callers with an API key may write.
    pub reserved_keys: ReservedKeys,
    pub events: Events,
    pub webhooks: Webhooks,
    pub identity: Identity,
    pub api_keys: ApiKeys,
    pub readiness: Readiness,
    /// The settings that the server started with, without secrets.
    pub settings: Arc<[SettingObject]>,
    pub stats: Stats,
    pub compressor: Compressor,
}

impl Api {
    #[must_use]
    pub fn threads_for(&self, behalf: &Behalf) -> Cow<'_, ThreadService> {
        match behalf {
            Behalf::Anyone => Cow::Borrowed(&self.service),
            Behalf::Caller(owner) => Cow::Owned(self.service.on_behalf_of(owner.clone())),
        }
    }

    #[must_use]
    pub fn scopes_for(&self, behalf: &Behalf) -> Cow<'_, ScopeService> {
        match behalf {
            Behalf::Anyone => Cow::Borrowed(&self.scopes),
            Behalf::Caller(owner) => Cow::Owned(self.scopes.on_behalf_of(owner.clone())),
        }
    }

    #[must_use]
    pub fn tools(&self) -> Toolbox {
        Toolbox::new(self.scopes.clone())
    }
}
