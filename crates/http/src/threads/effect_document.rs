use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::document::TURNS_MAX;
use super::effect_object::{malformed, read_outcome};
use crate::answer::ApiResult;
use crate::request::{RawJson, Time, Whole, invalid};
use threadkeep_domain::effects::{EffectImage, OPEN_MAX, Outcome, RESULTS_BYTES_MAX};
use threadkeep_domain::{Refusal, TurnNumbers};
use threadkeep_service::ServiceError;

type Number = Whole<0, TURNS_MAX>;

/// A tool call in an exported thread.
#[derive(ToSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[schema(as = ExportedEffect)]
pub(super) struct EffectPart<'a> {
    id: String,
    tool: String,
    /// The hash of the arguments.
    hash: String,
    /// The number of the last attempt.
    #[schema(value_type = u32, minimum = 1)]
    attempt: Whole<1, TURNS_MAX>,
    idempotency_key: String,
    /// The number of the turn that began the last attempt.
    #[schema(value_type = u32)]
    turn: Number,
    #[schema(value_type = String, format = DateTime)]
    begun_at: Time,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Value>)]
    result: Option<RawJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Value>)]
    error: Option<RawJson<'a>>,
}

impl<'a> EffectPart<'a> {
    pub(super) fn of(image: &'a EffectImage) -> Self {
        let value = |outcome: &'a Outcome| RawJson(outcome.value().as_str());
        let outcome = image.outcome.as_ref();
        Self {
            id: image.id.to_string(),
            tool: image.tool.to_string(),
            hash: image.hash.to_string(),
            attempt: Whole(image.attempt.into()),
            idempotency_key: image.key.to_string(),
            turn: Whole(image.turn.into()),
            begun_at: Time(image.begun_ms),
            result: outcome
                .filter(|outcome| matches!(outcome, Outcome::Result(_)))
                .map(value),
            error: outcome
                .filter(|outcome| matches!(outcome, Outcome::Error(_)))
                .map(value),
        }
    }

    fn read(self) -> ApiResult<EffectImage> {
        let outcome = match (self.result, self.error) {
            (None, None) => None,
            (result, error) => {
                let outcome = read_outcome(result, error)?;
                outcome
                    .check()
                    .map_err(|refusal| ServiceError::from(Refusal::from(refusal)))?;
                Some(outcome)
            }
        };
        let key = self.idempotency_key.parse();
        Ok(EffectImage {
            id: self.id.parse().map_err(malformed)?,
            tool: self.tool.parse().map_err(malformed)?,
            hash: self.hash.parse().map_err(malformed)?,
            attempt: self.attempt.0 as u32,
            key: key.map_err(|_| invalid("`effects[].idempotency_key` must be a UUID"))?,
            turn: self.turn.0 as u32,
            begun_ms: self.begun_at.0,
            outcome,
        })
    }
}

pub(super) fn read_effects(
    parts: Vec<EffectPart<'_>>,
    turns: TurnNumbers,
) -> ApiResult<Vec<EffectImage>> {
    let images = parts.into_iter().map(EffectPart::read);
    let images: Vec<_> = images.collect::<Result<_, _>>()?;
    if images.iter().any(|image| image.turn > turns.last) {
        return Err(invalid("`effects[].turn` must not be above `turns.last`"));
    }
    let mut ids = HashSet::with_capacity(images.len());
    if !images.iter().all(|image| ids.insert(image.id.as_str())) {
        return Err(invalid("`effects` has an id twice"));
    }
    if images
        .iter()
        .filter(|image| image.outcome.is_none())
        .count()
        > OPEN_MAX
    {
        return Err(invalid(
            "at most 64 of `effects` may lack `result` and `error`",
        ));
    }
    let outcomes = images.iter().filter_map(|image| image.outcome.as_ref());
    if outcomes.map(Outcome::size_bytes).sum::<u64>() > 2 * RESULTS_BYTES_MAX {
        return Err(invalid(
            "`effects` may have at most 8 MiB of results and errors",
        ));
    }
    Ok(images)
}
