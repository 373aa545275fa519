use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::ApiResult;
use crate::request::{RawJson, Whole, invalid};
use threadkeep_domain::effects::{
    Effect, EffectId, EffectNameError, Fence, FenceError, InputHash, Outcome, SettleEffect, Settled,
};
use threadkeep_domain::{Json, rfc3339};
use threadkeep_web::ApiError;

/// A tool call to begin.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BeginBody<'a> {
    /// The name of the tool, at most 128 bytes.
    #[schema(min_length = 1, max_length = 128)]
    pub(super) tool: String,
    /// The arguments of the call. Only their hash is stored.
    #[schema(nullable = false, value_type = Option<Value>)]
    #[serde(borrow)]
    pub(super) arguments: Option<RawJson<'a>>,
    /// A hash of the arguments. By default, the SHA-256 of the compact arguments, in hex.
    #[schema(nullable = false, max_length = 128, pattern = "^[!-~]+$")]
    pub(super) hash: Option<String>,
    /// True if the tool may run again with the same `idempotency_key`. A call in doubt then begins its next attempt.
    #[schema(nullable = false)]
    pub(super) idempotent: Option<bool>,
    /// To begin the next attempt, the attempt that failed or is in doubt.
    #[schema(nullable = false, value_type = Option<u32>, minimum = 1)]
    pub(super) retry: Option<Whole<1, { u32::MAX as u64 }>>,
}

/// How a tool call ended. Either `result` or `error` must be present.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SettleBody<'a> {
    /// The fence of the last attempt. Without it, only the holder of the turn can settle the call, if it is in doubt.
    #[schema(nullable = false, pattern = "^fence_[0-9a-f]{32}$")]
    fence: Option<String>,
    /// The result of the tool: any JSON value of up to 64 KiB.
    #[schema(nullable = false, value_type = Option<Value>)]
    #[serde(borrow)]
    result: Option<RawJson<'a>>,
    /// The error of the tool: any JSON value of up to 64 KiB.
    #[schema(nullable = false, value_type = Option<Value>)]
    error: Option<RawJson<'a>>,
}

/// A tool call, and how it ended.
#[derive(Serialize, ToSchema)]
pub(super) struct EffectObject<'a> {
    id: &'a str,
    /// `granted`: the caller may run the tool; `running`: the current turn runs the tool; `in_doubt`: the tool may have
    /// run; `done`: the call has a result; `failed`: the call has an error.
    #[schema(pattern = "^(granted|running|in_doubt|done|failed)$")]
    state: &'static str,
    tool: &'a str,
    /// The hash of the arguments.
    hash: &'a str,
    /// The number of the last attempt, starting at 1.
    attempt: u32,
    /// A UUID to pass to the system that the tool calls. It is the same for all attempts.
    idempotency_key: String,
    /// The number of the turn that began the last attempt; 0 if that was a turn of the thread that a fork copied.
    turn: u32,
    /// When the last attempt began.
    begun_at: Option<String>,
    /// The fence of this attempt. Use it to settle the call. Present only if the state is `granted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    fence: Option<String>,
    /// Present if the state is `done`. Lists omit it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Value>)]
    result: Option<RawJson<'a>>,
    /// Present if the state is `failed`. Lists omit it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Value>)]
    error: Option<RawJson<'a>>,
}

/// A tool call that was settled.
#[derive(Serialize, ToSchema)]
pub(super) struct SettledObject<'a> {
    #[serde(flatten)]
    effect: EffectObject<'a>,
    /// True if an earlier request settled the call with the same value.
    repeated: bool,
}

/// A page of tool calls.
#[derive(Serialize, ToSchema)]
pub(super) struct EffectList<'a> {
    /// The tool calls, newest first, without `result` and `error`.
    pub(super) effects: Vec<EffectObject<'a>>,
    /// The cursor of the next page. Null on the last page.
    pub(super) next_cursor: Option<String>,
}

impl BeginBody<'_> {
    pub(super) fn hash(&self) -> ApiResult<InputHash> {
        if let Some(hash) = &self.hash {
            return hash.parse().map_err(malformed);
        }
        let arguments = self.arguments.map(|RawJson(text)| Json::parse(text));
        let arguments = arguments.transpose().map_err(ApiError::InvalidJson)?;
        Ok(InputHash::of(arguments.as_ref()))
    }
}

impl SettleBody<'_> {
    pub(super) fn read(self, id: EffectId) -> ApiResult<SettleEffect> {
        let fence =
            read_fence(self.fence.as_deref()).map_err(|fault| invalid(fault.to_string()))?;
        Ok(SettleEffect {
            id,
            fence,
            outcome: read_outcome(self.result, self.error)?,
        })
    }
}

pub(super) fn read_fence(text: Option<&str>) -> Result<Option<Fence>, FenceError> {
    text.map(str::parse).transpose()
}

pub(super) fn read_outcome(
    result: Option<RawJson<'_>>,
    error: Option<RawJson<'_>>,
) -> ApiResult<Outcome> {
    let value = |RawJson(text)| Json::parse(text).map_err(ApiError::InvalidJson);
    match (result, error) {
        (Some(result), None) => Ok(Outcome::Result(value(result)?)),
        (None, Some(error)) => Ok(Outcome::Error(value(error)?)),
        _ => Err(invalid("either `result` or `error` must be given")),
    }
}

pub(super) fn malformed(fault: EffectNameError) -> ApiError {
    invalid(fault.to_string())
}

impl<'a> EffectObject<'a> {
    pub(super) fn of(effect: &'a Effect) -> Self {
        let value = |outcome: &'a Outcome| RawJson(outcome.value().as_str());
        let (result, error) = match &effect.outcome {
            None => (None, None),
            Some(outcome @ Outcome::Result(_)) => (Some(value(outcome)), None),
            Some(outcome @ Outcome::Error(_)) => (None, Some(value(outcome))),
        };
        Self {
            id: effect.id.as_str(),
            state: effect.state.as_str(),
            tool: effect.tool.as_str(),
            hash: effect.hash.as_str(),
            attempt: effect.attempt,
            idempotency_key: effect.key.to_string(),
            turn: effect.turn,
            begun_at: rfc3339(effect.begun_ms),
            fence: effect.fence.map(|fence| fence.to_string()),
            result,
            error,
        }
    }
}

impl<'a> SettledObject<'a> {
    pub(super) fn of(settled: &'a Settled) -> Self {
        Self {
            effect: EffectObject::of(&settled.effect),
            repeated: settled.repeated,
        }
    }
}
