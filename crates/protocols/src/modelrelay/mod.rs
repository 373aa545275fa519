//! The API of `ModelRelay`'s published clients: state handles, sessions with messages, runs as scopes, and tools.
//!
//! The API is served below `/api/v1`, and at the root for clients whose base URL has no path. Every request needs an
//! API key of this server, in `X-ModelRelay-Api-Key` or as a bearer token. The clients send only keys that begin with
//! `mr_sk_`, so `THREADKEEP_API_KEYS` must contain such a key, for example `relay:mr_sk_...`. All objects belong to one
//! project.
//!
//! Extensions to the original API:
//!
//! - `GET /state-handles/{id}` and `POST /state-handles/{id}/extend`
//! - runs on a state handle (`state_id`), and `POST /runs/{id}/complete` to end a run
//! - state in a run's events (`?include=state`)
//! - `POST /sessions/{id}/clear` with a body
//! - `POST /tool-calls`; the original server calls the tools itself
//! - detection of repeated requests by `Idempotency-Key` or by the request's id

mod artifacts;
mod bodies;
mod envelope;
mod error;
mod event_query;
mod events;
mod lines;
mod messages;
mod request;
mod responses;
mod routes;
mod run_objects;
mod runs;
mod session_objects;
mod sessions;
mod state_handles;
mod tool_calls;

use threadkeep_domain::KeyRing;
use threadkeep_events::Events;
use threadkeep_identity::ApiKeys;
use threadkeep_responses::ResponseService;
use threadkeep_service::tools::Toolbox;
use threadkeep_service::{RunService, ScopeService, SessionService, StateHandleService};

pub use error::RelayError;

/// Every object belongs to this project.
const PROJECT_ID: &str = "00000000-0000-4000-8000-000000000001";

#[derive(Debug, Clone)]
pub struct ModelRelay {
    pub handles: StateHandleService,
    pub sessions: SessionService,
    pub runs: RunService,
    pub scopes: ScopeService,
    pub tools: Toolbox,
    /// `None` if no models are configured.
    pub responses: Option<ResponseService>,
    /// Decides when streams end.
    pub events: Events,
    /// Derives ids, so that a repeated request gets the same id.
    pub ring: KeyRing,
    pub api_keys: ApiKeys,
}
