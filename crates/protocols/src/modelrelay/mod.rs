//! The protocol of `ModelRelay`'s published clients: state handles, sessions with messages, runs as
//! scopes, and tools.
//!
//! It is served below `/api/v1`, and at the root for clients whose base URL has no path. Every
//! client needs an API key of the service, in `X-ModelRelay-Api-Key` or as a bearer token. The
//! clients only send keys that begin with `mr_sk_`, so one of `THREADKEEP_API_KEYS` must, such as
//! `relay:mr_sk_...`. All their objects belong to one project.
//!
//! Beyond the original: `GET /state-handles/{id}` and `POST /state-handles/{id}/extend`; runs on a
//! handle (`state_id`), which are ended by `POST /runs/{id}/complete`; their state in their events
//! (`?include=state`); `POST /sessions/{id}/clear` with a body; `POST /tool-calls`, where the
//! original calls tools by itself; and repeats that are recognized by `Idempotency-Key`, or by the
//! request's id.

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

/// The project that everything belongs to.
const PROJECT_ID: &str = "00000000-0000-4000-8000-000000000001";

/// The dependencies of the handlers.
#[derive(Debug, Clone)]
pub struct ModelRelay {
    /// State handles.
    pub handles: StateHandleService,
    /// Sessions and their messages.
    pub sessions: SessionService,
    /// Runs.
    pub runs: RunService,
    /// The scopes of all these.
    pub scopes: ScopeService,
    /// The tools of models.
    pub tools: Toolbox,
    /// The responses of models; none without models.
    pub responses: Option<ResponseService>,
    /// When streams end.
    pub events: Events,
    /// The keys that derive ids, so that a repeat gets the same id.
    pub ring: KeyRing,
    /// The keys that open the protocol.
    pub api_keys: ApiKeys,
}
