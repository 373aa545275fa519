//! The stored form of effects: see `lua/shared/effects.lua`.

use std::collections::HashMap;

use threadkeep_domain::effects::{
    Effect, EffectId, EffectImage, EffectState, Fence, InputHash, Outcome, RunKey, ToolName,
};
use threadkeep_domain::{Json, TurnNumbers};
use threadkeep_store::StoreError;

use crate::shared::arguments::put;

const CORRUPT: StoreError = StoreError::Corrupt("an effect of another form");
const UNUSED: [u8; 16] = [0; 16];
/// Format of field `M` of the effects: bytes of the life, and of each number after it.
const META: [usize; 10] = [8, 4, 4, 4, 4, 4, 6, 2, 4, 4];
const GENERATION: usize = 7;
const DONE: u8 = 1;
const FAILED: u8 = 2;

/// The stored form of an effect, without its outcome.
pub(super) struct Record {
    id: EffectId,
    position: u64,
    attempt: u32,
    turn: u32,
    begun_ms: u64,
    state: u8,
    generation: u64,
    fence: Fence,
    key: RunKey,
    tool: ToolName,
    hash: InputHash,
}

/// Encodes the tool and the hash. Both have at most 128 bytes.
pub(super) fn names(tool: &ToolName, hash: &InputHash) -> Vec<u8> {
    let (tool, hash) = (tool.as_str().as_bytes(), hash.as_str().as_bytes());
    [&[tool.len() as u8], tool, &[hash.len() as u8], hash].concat()
}

/// Encodes an outcome as its state and its value.
pub(crate) fn outcome(outcome: &Outcome) -> (&'static str, &str) {
    match outcome {
        Outcome::Result(value) => ("1", value.as_str()),
        Outcome::Error(value) => ("2", value.as_str()),
    }
}

impl Record {
    pub(super) fn read(mut packed: &[u8]) -> Result<Self, StoreError> {
        let rest = &mut packed;
        let numbers = [4, 4, 4, 4, 4, 6, 1, 2].map(|bytes| take(rest, bytes));
        let [
            position,
            _before,
            attempt,
            turn,
            _used,
            begun_ms,
            state,
            generation,
        ] = numbers.map(number);
        let [fence, key, _request] = [16; 3].map(|bytes| take(rest, bytes).try_into());
        let [tool, hash] = [0; 2].map(|_| {
            let length = number(take(rest, 1));
            take(rest, length as usize)
        });
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| CORRUPT);
        Ok(Self {
            id: text(rest)?.parse().map_err(|_| CORRUPT)?,
            position,
            attempt: attempt as u32,
            turn: turn as u32,
            begun_ms,
            state: state as u8,
            generation,
            fence: Fence(fence.map_err(|_| CORRUPT)?),
            key: RunKey(key.map_err(|_| CORRUPT)?),
            tool: text(tool)?.parse().map_err(|_| CORRUPT)?,
            hash: text(hash)?.parse().map_err(|_| CORRUPT)?,
        })
    }

    /// Converts a record of the current generation to the effect that a caller sees.
    pub(super) fn into_effect(self, state: EffectState, value: &str) -> Effect {
        let outcome = match value {
            "" => None,
            _ => self.outcome(value),
        };
        Effect {
            id: self.id,
            state,
            tool: self.tool,
            hash: self.hash,
            attempt: self.attempt,
            key: self.key,
            turn: self.turn,
            begun_ms: self.begun_ms,
            outcome,
            fence: (state == EffectState::Granted).then_some(self.fence),
            position: self.position,
        }
    }

    fn outcome(&self, value: &str) -> Option<Outcome> {
        let value = Json::from_compact(value);
        match self.state {
            DONE => Some(Outcome::Result(value)),
            FAILED => Some(Outcome::Error(value)),
            _ => None,
        }
    }
}

pub(super) fn state(letter: &str) -> Result<EffectState, StoreError> {
    Ok(match letter {
        "g" => EffectState::Granted,
        "r" => EffectState::Running,
        "i" => EffectState::InDoubt,
        "d" => EffectState::Done,
        "f" => EffectState::Failed,
        _ => return Err(CORRUPT),
    })
}

pub(super) fn letter(state: EffectState) -> &'static str {
    match state {
        EffectState::Granted => "g",
        EffectState::Running => "r",
        EffectState::InDoubt => "i",
        EffectState::Done => "d",
        EffectState::Failed => "f",
    }
}

/// Reads all effects from the fields of their hash, oldest first.
pub(crate) fn images(fields: &[(&[u8], &[u8])]) -> Result<Vec<EffectImage>, StoreError> {
    let by_name: HashMap<_, _> = fields.iter().copied().collect();
    let Some(mut meta) = by_name.get(&b"M"[..]).copied() else {
        return Ok(Vec::new());
    };
    let generation = META.map(|bytes| number(take(&mut meta, bytes)))[GENERATION];
    let mut found = Vec::new();
    for (name, packed) in fields {
        let Some((b'n', position)) = name.split_first() else {
            continue;
        };
        let record = Record::read(packed)?;
        let value = by_name.get(&*[b"r", position].concat());
        let value = value.copied().unwrap_or_default();
        let value = std::str::from_utf8(value).map_err(|_| CORRUPT)?;
        let image = EffectImage {
            outcome: record.outcome(value),
            id: record.id,
            tool: record.tool,
            hash: record.hash,
            attempt: record.attempt,
            key: record.key,
            // a turn of an earlier generation belongs to the source of the fork
            turn: if record.generation == generation {
                record.turn
            } else {
                0
            },
            begun_ms: record.begun_ms,
        };
        found.push((record.position, image));
    }
    found.sort_unstable_by_key(|(position, _)| *position);
    Ok(found.into_iter().map(|(_, image)| image).collect())
}

/// Returns the fields of a hash with the effects of an image, except field `M`.
pub(crate) fn fields(images: &[EffectImage], numbers: TurnNumbers) -> Vec<[Vec<u8>; 2]> {
    let mut fields = Vec::with_capacity(4 * images.len());
    for (index, image) in images.iter().enumerate() {
        let (before, position) = (index as u64, index as u64 + 1);
        let after = if index + 1 == images.len() {
            0
        } else {
            position + 1
        };
        let (id, mut packed) = (image.id.as_str().as_bytes(), Vec::new());
        let state = match &image.outcome {
            None => 0,
            Some(Outcome::Result(_)) => DONE,
            Some(Outcome::Error(_)) => FAILED,
        };
        put(&mut packed, position, 4);
        put(&mut packed, before, 4);
        put(&mut packed, image.attempt.into(), 4);
        put(&mut packed, image.turn.into(), 4);
        // the effect can be removed once this turn or a later one is complete
        put(&mut packed, numbers.last.into(), 4);
        put(&mut packed, image.begun_ms, 6);
        put(&mut packed, state.into(), 1);
        put(&mut packed, 0, 2);
        for bytes in [UNUSED, image.key.0, UNUSED] {
            packed.extend_from_slice(&bytes);
        }
        packed.extend(names(&image.tool, &image.hash));
        packed.extend_from_slice(id);
        let link = |kind| format!("{kind}{position}").into_bytes();
        fields.push([link('n'), packed]);
        fields.push([
            [b"e", id].concat(),
            (position as u32).to_be_bytes().to_vec(),
        ]);
        fields.push([link('a'), (after as u32).to_be_bytes().to_vec()]);
        if let Some(outcome) = &image.outcome {
            let value = outcome.value().as_str().as_bytes();
            fields.push([link('r'), value.to_vec()]);
        }
    }
    fields
}

/// Returns field `M` for the effects of an image, without the life. Empty if there are no effects.
pub(crate) fn meta(images: &[EffectImage]) -> Vec<u8> {
    let mut packed = Vec::new();
    if images.is_empty() {
        return packed;
    }
    let count = images.len() as u64;
    let outcomes = images.iter().filter_map(|image| image.outcome.as_ref());
    let bytes: u64 = outcomes.clone().map(Outcome::size_bytes).sum();
    let open = count - outcomes.count() as u64;
    let numbers = [count, 1, count, count, open, bytes, 0, 0, 0];
    for (number, bytes) in numbers.into_iter().zip(&META[1..]) {
        put(&mut packed, number, *bytes);
    }
    packed
}

/// Returns field `N` of an imported thread: see `lua/shared/turns.lua`. Empty if it has neither turns nor effects.
pub(crate) fn turns(numbers: TurnNumbers, has_effects: bool) -> Vec<u8> {
    let mut packed = Vec::new();
    if numbers.last > 0 || has_effects {
        put(&mut packed, numbers.last.into(), 4);
        put(&mut packed, numbers.complete.into(), 4);
        put(&mut packed, has_effects.into(), 1);
        packed.extend_from_slice(&[0; 4]);
    }
    packed
}

/// Reads the numbers of the turns from the fields `U` and `N`, as `numbers_of` in `lua/shared/turns.lua` does.
pub(crate) fn turn_numbers(turn: &[u8], mut numbers: &[u8]) -> TurnNumbers {
    const NUMBERED_AT: usize = 9;
    let is_numbered = turn.is_empty()
        || numbers
            .get(NUMBERED_AT..)
            .is_some_and(|token| turn.starts_with(token));
    let [last, complete] = [4, 4].map(|bytes| number(take(&mut numbers, bytes)) as u32);
    TurnNumbers {
        last: last.saturating_add(u32::from(!is_numbered)),
        complete,
    }
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> &'a [u8] {
    let (taken, after) = rest.split_at(bytes.min(rest.len()));
    *rest = after;
    taken
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}
