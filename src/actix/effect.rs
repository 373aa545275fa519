use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Turn, from_json, to_json};
use threadkeep_domain::Json;
use threadkeep_domain::effects::{
    Effect, EffectId, EffectNameError, EffectState, Fence, InputHash, Outcome, SettleEffect,
    ToolName,
};
use threadkeep_service::EffectRequest;
use threadkeep_web::ApiError;

/// A tool call that runs once, even if processes die: see [`Turn::effect`].
#[must_use]
#[derive(Debug)]
pub struct ToolCall<'a> {
    turn: &'a Turn,
    names: Result<(EffectId, ToolName, InputHash), ApiError>,
    idempotent: bool,
    retry: Option<u32>,
}

/// An attempt to run a tool.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// A UUID to pass to the system that the tool calls. It is the same for all attempts.
    pub key: String,
    /// The number of the attempt, starting at 1.
    pub number: u32,
}

/// The reason why a tool call has no result.
#[derive(Debug, thiserror::Error)]
pub enum EffectError {
    /// The tool failed with this error, now or in an earlier attempt. [`ToolCall::retry`] begins the next attempt.
    #[error("the tool failed in attempt {attempt}")]
    Failed {
        /// Any JSON value.
        error: serde_json::Value,
        /// The attempt that failed.
        attempt: u32,
    },
    /// An earlier turn began the last attempt and did not settle it, so the tool may have run.
    ///
    /// Look up `key` in the system that the tool calls. If the tool ran, call [`Turn::settle`]; if not, call
    /// [`ToolCall::retry`].
    #[error("the tool may have run in attempt {attempt}")]
    InDoubt {
        /// The key that all attempts pass to that system.
        key: String,
        /// The last attempt.
        attempt: u32,
    },
    /// Another task of this turn runs the tool.
    #[error("another task of this turn runs the tool")]
    Running,
    /// The request failed.
    #[error(transparent)]
    Api(#[from] ApiError),
}

impl EffectError {
    /// Returns the error with which `run` reports that the tool failed. The ledger records it, so the tool runs again
    /// only after [`ToolCall::retry`].
    pub fn failed(error: impl Into<serde_json::Value>) -> Self {
        let error = error.into();
        Self::Failed { error, attempt: 0 }
    }
}

impl Turn {
    /// Describes a tool call. `id` is the id that the model gave to the call, or another text of 1 to 128 visible ASCII
    /// characters.
    ///
    /// A later call with this id must have the same tool and arguments. The store compares the hash of the arguments'
    /// JSON text, so do not pass a map with a random order, such as a `HashMap`.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use threadkeep::{EffectError, Thread};
    /// # async fn send(to: &str, key: &str) -> u64 { 1 }
    /// # async fn answer(thread: Thread) -> Result<(), EffectError> {
    /// let turn = thread.turn(Duration::from_secs(30)).await?;
    /// let call = turn.effect("call_1", "send_mail", &"ada@example.com");
    /// let mail: u64 = call.run(async |attempt| Ok(send("ada@example.com", &attempt.key).await)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn effect(&self, id: &str, tool: &str, arguments: &impl Serialize) -> ToolCall<'_> {
        ToolCall {
            turn: self,
            names: names(id, tool, arguments),
            idempotent: false,
            retry: None,
        }
    }

    /// Records the result of a tool call that is in doubt.
    pub async fn settle(&self, id: &str, result: &impl Serialize) -> Result<(), ApiError> {
        let outcome = Outcome::Result(json(result)?);
        self.record(id.parse().map_err(malformed)?, None, outcome)
            .await
    }

    async fn record(
        &self,
        id: EffectId,
        fence: Option<Fence>,
        outcome: Outcome,
    ) -> Result<(), ApiError> {
        let settle = SettleEffect { id, fence, outcome };
        let (effects, thread, token) = self.effects();
        let thread = thread.read().await;
        effects.settle(&thread, &settle, Some(token)).await?;
        Ok(())
    }
}

impl ToolCall<'_> {
    /// Runs the tool again if it may have run. Use this if the system that the tool calls ignores a repeated key.
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Begins the attempt after `attempt`, which failed or is in doubt.
    pub fn retry(mut self, attempt: u32) -> Self {
        self.retry = Some(attempt);
        self
    }

    /// Runs the tool and records its result, or returns the result of an earlier run.
    ///
    /// If `run` returns [`EffectError::Failed`], records the error. After any other error, the call remains running
    /// until the turn ends, and is then in doubt.
    pub async fn run<T: Serialize + DeserializeOwned>(
        self,
        run: impl AsyncFnOnce(Attempt) -> Result<T, EffectError>,
    ) -> Result<T, EffectError> {
        let (id, tool, hash) = self.names?;
        let (effects, thread, token) = self.turn.effects();
        let request = EffectRequest {
            id,
            tool,
            hash,
            idempotent: self.idempotent,
            retry: self.retry,
            turn: token,
            idempotency: None,
        };
        let thread = *thread.read().await;
        let effect = effects
            .begin(&thread, &request)
            .await
            .map_err(ApiError::from)?;
        let attempt = effect.attempt;
        match (effect.state, effect.fence) {
            (EffectState::Granted, Some(fence)) => {
                let key = effect.key.to_string();
                let result = run(Attempt {
                    key,
                    number: attempt,
                })
                .await;
                let outcome = match &result {
                    Ok(result) => Outcome::Result(json(result)?),
                    Err(EffectError::Failed { error, .. }) => Outcome::Error(json(error)?),
                    Err(_) => return result,
                };
                self.turn.record(request.id, Some(fence), outcome).await?;
                match result {
                    Err(EffectError::Failed { error, .. }) => {
                        Err(EffectError::Failed { error, attempt })
                    }
                    result => result,
                }
            }
            _ => recorded(&effect),
        }
    }
}

fn recorded<T: DeserializeOwned>(effect: &Effect) -> Result<T, EffectError> {
    let attempt = effect.attempt;
    match &effect.outcome {
        Some(Outcome::Result(result)) => Ok(from_json(result.as_str().as_bytes())?),
        Some(Outcome::Error(error)) => Err(EffectError::Failed {
            error: from_json(error.as_str().as_bytes())?,
            attempt,
        }),
        None if effect.state == EffectState::InDoubt => Err(EffectError::InDoubt {
            key: effect.key.to_string(),
            attempt,
        }),
        None => Err(EffectError::Running),
    }
}

fn names(
    id: &str,
    tool: &str,
    arguments: &impl Serialize,
) -> Result<(EffectId, ToolName, InputHash), ApiError> {
    let hash = InputHash::of(Some(&json(arguments)?));
    Ok((
        id.parse().map_err(malformed)?,
        tool.parse().map_err(malformed)?,
        hash,
    ))
}

fn json(value: &impl Serialize) -> Result<Json, ApiError> {
    Json::parse(&to_json(value)?).map_err(ApiError::InvalidJson)
}

fn malformed(fault: EffectNameError) -> ApiError {
    ApiError::InvalidParameter(fault.to_string())
}
