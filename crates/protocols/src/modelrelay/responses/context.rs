use uuid::Uuid;

use crate::modelrelay::bodies::read_id;
use crate::modelrelay::error::wrong_body;
use crate::modelrelay::{ModelRelay, RelayError};
use threadkeep_domain::scope::ScopeId;
use threadkeep_responses::ResponseContext;
use threadkeep_service::Creation;

/// Where the tools of a response keep state. With [`Self::Nothing`], the state is discarded when the response ends. If
/// `has_history` is true, the response continues the messages of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    Nothing,
    State(Uuid),
    Session { id: Uuid, has_history: bool },
    Run(Uuid),
}

impl Context {
    /// Parses the ids of a state handle, a session and a run. Only one of the ids may be present.
    pub(super) fn read(
        [state, session, run]: [Option<&str>; 3],
        has_history: bool,
    ) -> Result<Self, RelayError> {
        let state = read_id("state_id", state)?;
        let session = read_id("session_id", session)?;
        let run = read_id("run_id", run)?;
        let context = match (state, session, run) {
            (None, None, None) => Self::Nothing,
            (Some(id), None, None) => Self::State(id),
            (None, Some(id), None) => Self::Session { id, has_history },
            (None, None, Some(id)) => Self::Run(id),
            _ => {
                let text = "only one of state_id, session_id and run_id is the context";
                return Err(wrong_body(text));
            }
        };
        if has_history && !matches!(context, Self::Session { .. }) {
            return Err(wrong_body("threadkeep.history goes with session_id"));
        }
        Ok(context)
    }

    /// Converts the context for the model loop.
    pub(super) fn for_response(self) -> ResponseContext {
        match self {
            Self::Nothing => ResponseContext::Nothing,
            Self::Session {
                has_history: true, ..
            } => ResponseContext::Session,
            Self::State(_) | Self::Session { .. } | Self::Run(_) => ResponseContext::State,
        }
    }

    /// Returns the scope of the response. The scope need not exist. With [`Self::Nothing`], the scope stays empty.
    pub(super) async fn scope(
        self,
        relay: &ModelRelay,
        making: &Creation,
    ) -> Result<ScopeId, RelayError> {
        Ok(match self {
            Self::Nothing => relay.sessions.scope(making.id),
            Self::State(id) => ScopeId::State(id),
            Self::Session { id, .. } => relay.sessions.scope(id),
            Self::Run(id) => relay.runs.get(id).await?.scope(),
        })
    }

    /// Checks that the context exists and accepts tool calls.
    pub(super) async fn check(self, relay: &ModelRelay) -> Result<(), RelayError> {
        match self {
            Self::Nothing => {}
            Self::State(id) => drop(relay.handles.get(id).await?),
            Self::Session { id, .. } => drop(relay.sessions.tool_scope(id).await?),
            Self::Run(id) => drop(relay.runs.tool_scope(id).await?),
        }
        Ok(())
    }
}
