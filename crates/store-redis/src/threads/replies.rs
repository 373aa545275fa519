use redis::Value;

use crate::scopes::replies::appended;
use crate::shared::Meta;
use crate::transport::{UNKNOWN, array, bytes, integer, text};
use crate::{Limits, accepted, unless_refused};
use threadkeep_domain::close_array;
use threadkeep_domain::{
    Answer, Json, Operation, Owner, Refusal, Thread, ThreadPolicy, Write, Written, appends, settles,
};
use threadkeep_store::{Destroyed, Rotated, StoreError, WriteError};

/// Number of values that describe a thread in a reply: metadata, remaining lifetime, current time and owner. Answers
/// that were stored by earlier versions of this service do not include the owner.
const DESCRIPTION_VALUES: usize = 4;

pub(crate) fn written(reply: Value, write: &Write<'_>) -> Result<(Meta, Written), WriteError> {
    let limits = Limits::of(write.policy, &write.history);
    let reply = accepted(array(reply)?, limits)
        .map_err(|error| with_list_index(error, write.operations))?;
    let [_, replayed, packed, results, rest @ ..] = &reply[..] else {
        return Err(UNKNOWN.into());
    };
    let described = if write.describe {
        DESCRIPTION_VALUES.min(rest.len())
    } else {
        0
    };
    let (description, popped) = rest.split_at(described);
    let meta = Meta::read(bytes(packed)?)?;
    let written = Written {
        stamp: meta.stamp,
        size_bytes: meta.size_bytes,
        answers: answers(text(results)?, popped, write.operations)?,
        thread: describe(&meta, description)?,
        replayed: integer(replayed)? == 1,
    };
    Ok((meta, written))
}

/// The `Meta` record of a thread after a write, and the time of the write before it.
pub(super) struct Step {
    pub(super) meta: Meta,
    /// Time of the thread's previous write, or 0 for a new thread.
    pub(super) written_ms: u64,
}

/// Returns no step for a replay.
pub(super) fn step_of_list(
    mut reply: Value,
    write: &Write<'_>,
) -> Result<(Option<Step>, Written), WriteError> {
    let before = match &mut reply {
        Value::Array(parts) => match parts[..] {
            [_, Value::Int(0), ..] => parts.pop(),
            _ => None,
        },
        _ => None,
    };
    let (meta, written) = written(reply, write)?;
    let written_ms = before.as_ref().map(integer).transpose()?;
    let step = written_ms.map(|written_ms| Step { meta, written_ms });
    Ok((step, written))
}

/// Returns `None` if the list script must do the write.
pub(super) fn step_of_fast(
    reply: Value,
    write: &Write<'_>,
) -> Result<Option<(Step, Written)>, WriteError> {
    if reply == Value::Int(0) {
        return Ok(None);
    }
    let reply = accepted(array(reply)?, write.policy)?;
    let [packed, written_ms, length @ ..] = &reply[..] else {
        return Err(UNKNOWN.into());
    };
    let answer = match length {
        [] => Answer::Done,
        [length, ..] => Answer::Length(integer(length)?),
    };
    let meta = Meta::read(bytes(packed)?)?;
    let written = Written {
        stamp: meta.stamp,
        size_bytes: meta.size_bytes,
        answers: vec![answer],
        thread: None,
        replayed: false,
    };
    let step = Step {
        meta,
        written_ms: integer(written_ms)?,
    };
    Ok(Some((step, written)))
}

pub(crate) fn destroyed(reply: Value) -> Result<Destroyed, WriteError> {
    let reply = unless_refused(array(reply)?)?;
    let [_, replayed, existed] = &reply[..] else {
        return Err(UNKNOWN.into());
    };
    Ok(Destroyed {
        existed: integer(existed)? == 1,
        replayed: integer(replayed)? == 1,
    })
}

pub(crate) fn rotated(reply: Value) -> Result<Rotated, WriteError> {
    let reply = unless_refused(array(reply)?)?;
    let [_, replayed, id, thread @ ..] = &reply[..] else {
        return Err(UNKNOWN.into());
    };
    let thread = match thread {
        [] => None,
        [packed, description @ ..] => describe(&Meta::read(bytes(packed)?)?, description)?,
    };
    Ok(Rotated {
        id: text(id)?.parse().map_err(|_| UNKNOWN)?,
        thread,
        replayed: integer(replayed)? == 1,
    })
}

pub(crate) fn thread(reply: Value) -> Result<Option<Thread>, StoreError> {
    if reply == Value::Nil {
        return Ok(None);
    }
    let reply = array(reply)?;
    let [packed, description @ ..] = &reply[..] else {
        return Err(UNKNOWN);
    };
    describe(&Meta::read(bytes(packed)?)?, description)
}

/// Parses the `Meta` record of a thread, and its remaining lifetime in milliseconds at the time of the reply.
pub(super) fn remaining_lifetime(reply: &Value) -> Result<Option<(Meta, u64)>, StoreError> {
    let Value::Array(parts) = reply else {
        return Ok(None);
    };
    let [packed, _, left_ms, ..] = &parts[..] else {
        return Ok(None);
    };
    Ok(Some((Meta::read(bytes(packed)?)?, integer(left_ms)?)))
}

pub(crate) fn restored(reply: Value, policy: &ThreadPolicy) -> Result<Option<Thread>, WriteError> {
    if reply == Value::Nil {
        return Ok(None);
    }
    Ok(thread(Value::Array(accepted(array(reply)?, policy)?))?)
}

pub(super) fn described(reply: &[Value]) -> Result<Written, StoreError> {
    let [_, replayed, packed, _, description @ ..] = reply else {
        return Err(UNKNOWN);
    };
    let meta = Meta::read(bytes(packed)?)?;
    Ok(Written {
        stamp: meta.stamp,
        size_bytes: meta.size_bytes,
        answers: Vec::new(),
        thread: describe(&meta, description)?,
        replayed: integer(replayed)? == 1,
    })
}

pub(super) fn describe(meta: &Meta, description: &[Value]) -> Result<Option<Thread>, StoreError> {
    let [metadata, left_ms, now_ms, owner @ ..] = description else {
        return Ok(None);
    };
    let metadata = match metadata {
        Value::Nil => Json::empty_object(),
        metadata => Json::from_compact(text(metadata)?),
    };
    let expires_ms = integer(now_ms)?.checked_add(integer(left_ms)?);
    let expires_ms = expires_ms.ok_or(UNKNOWN)?;
    let owner = match owner {
        [] | [Value::Nil] => None,
        [owner, ..] => match text(owner)? {
            "" => None,
            owner => Some(Owner::new(owner).map_err(|_| UNKNOWN)?),
        },
    };
    Ok(Some(meta.describe(metadata, expires_ms, owner)))
}

/// Parses operations' answers. `results` contains a letter, a value and `;` for each non-empty answer, such as `d1;`.
fn answers(
    results: &str,
    popped: &[Value],
    operations: &[Operation],
) -> Result<Vec<Answer>, StoreError> {
    let mut popped = popped.iter();
    let (mut appends, mut settles) = (appends(operations), settles(operations));
    let mut answers = vec![Answer::Done; operations.len()];
    let indexed = operations.iter().enumerate();
    let mut answering = indexed.filter(|(_, operation)| has_answer(operation));
    for result in results.split(';').filter(|result| !result.is_empty()) {
        if let Some(position) = result.strip_prefix('a') {
            let (index, item) = appends.next().ok_or(UNKNOWN)?;
            answers[index] = Answer::Appended(item.id.clone(), appended(position)?);
            continue;
        }
        if let Some(settled) = result.strip_prefix('t') {
            let (index, settle) = settles.next().ok_or(UNKNOWN)?;
            answers[index] = Answer::Settled {
                state: settle.outcome.state(),
                repeated: settled.ends_with('1') && settled.len() > 1,
            };
            continue;
        }
        let (index, answer) = match result.split_once(' ') {
            // a replayed answer of an earlier release, which included the index
            Some((index, answer)) => (index.parse().map_err(|_| UNKNOWN)?, answer),
            None => (answering.next().ok_or(UNKNOWN)?.0, result),
        };
        let (kind, value) = answer.split_at_checked(1).ok_or(UNKNOWN)?;
        let answer = match kind {
            "d" => Answer::Deleted(value == "1"),
            "l" => Answer::Length(value.parse().map_err(|_| UNKNOWN)?),
            "e" => Answer::Popped(elements(popped.next().ok_or(UNKNOWN)?)?),
            "s" => Answer::Skipped,
            "v" => Answer::Value(value.parse().map_err(|_| UNKNOWN)?),
            _ => return Err(UNKNOWN),
        };
        // a replayed request is identical, so the index exists
        *answers.get_mut::<usize>(index).ok_or(UNKNOWN)? = answer;
    }
    Ok(answers)
}

fn elements(reply: &Value) -> Result<Json, StoreError> {
    let mut json = bytes(reply)?.to_vec();
    close_array(0, &mut json);
    let json = String::from_utf8(json).map_err(|_| UNKNOWN)?;
    Ok(Json::from_compact(json))
}

/// Converts the script's index of a refused operation to an index in `operations`. The two indexes differ, because the
/// script counts appends and settled effects separately from other operations.
fn with_list_index(error: WriteError, operations: &[Operation]) -> WriteError {
    let WriteError::Refused(mut refusal) = error else {
        return error;
    };
    if let Refusal::ItemIdReused { item } = refusal {
        let operation = appends(operations)
            .nth(item)
            .map_or(item, |(index, _)| index);
        return Refusal::AppendReusesId { operation }.into();
    }
    if let Refusal::Effect {
        operation: Some(operation),
        ..
    }
    | Refusal::TurnNotHeld {
        operation: Some(operation),
        ..
    } = &mut refusal
    {
        let settle = settles(operations).nth(*operation);
        *operation = settle.map_or(*operation, |(index, _)| index);
        return refusal.into();
    }
    if let Some(index) = refusal.operation_mut() {
        let counted = operations.iter().enumerate();
        let mut counted = counted.filter(|(_, operation)| {
            !matches!(operation, Operation::Append(_) | Operation::Settle(_))
        });
        *index = counted.nth(*index).map_or(*index, |(index, _)| index);
    }
    refusal.into()
}

fn has_answer(operation: &Operation) -> bool {
    match operation {
        // appends and settlements have their own answers
        Operation::Set { .. } | Operation::Clear | Operation::Append(_) | Operation::Settle(_) => {
            false
        }
        Operation::Delete { .. }
        | Operation::Push { .. }
        | Operation::Pop { .. }
        | Operation::Increment { .. } => true,
    }
}
