use std::collections::HashSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::effect_document::{EffectPart, read_effects};
use crate::answer::ApiResult;
use crate::request::{
    CheckpointNameText, List, OwnerText, RawJson, RawObject, Time, Whole, body_object, invalid,
    read,
};
use threadkeep_domain::effects::EFFECTS_MAX;
use threadkeep_domain::scope::{
    KV_MAX_KEYS, KeyImage, KeyRule, NewTask, ScopeError, ScopeImage, ScopeKey, ScopeValue,
    StoredItem, TASKS_MAX, Task, TaskList, TaskStatus,
};
use threadkeep_domain::{
    CHECKPOINTS_MAX, CheckpointImage, CheckpointImages, Document, Image, Json, Life, Stamp,
    TTL_MAX, Thread, ThreadId, ThreadPolicy, TurnNumbers, keyed_values_of_any_key,
};
use threadkeep_service::ServiceError;
use threadkeep_web::ApiError;

/// Number of nesting levels around a value: document, history, items, item.
const AROUND: usize = 4;
/// Largest version, and largest position in a history.
const COUNT_MAX: u64 = 1 << 40;
/// Maximum number of items in a history: each item counts as at least 64 bytes, and a history has at most 1 GiB.
const ITEMS_MAX: usize = 16_777_216;

/// Highest number of a turn or an attempt in an import. Leaves room for more turns than a thread can take.
pub(super) const TURNS_MAX: u64 = 1 << 30;

type Count = Whole<0, COUNT_MAX>;

/// A complete thread, except for its turn, fences and idempotency keys.
#[derive(ToSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ThreadDocument<'a> {
    #[schema(value_type = u64, minimum = 1, maximum = 1)]
    format: Whole<1, 1>,
    #[serde(borrow)]
    thread: ThreadPart<'a>,
    /// The owner, if the thread has one.
    #[schema(nullable = false, value_type = Option<String>, min_length = 1, max_length = 256)]
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<OwnerText>,
    #[schema(value_type = Object)]
    metadata: RawObject<'a>,
    #[schema(value_type = BTreeMap<String, Value>)]
    state: RawObject<'a>,
    /// Keys and tasks. Absent if the thread never had keys, tasks or history items.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<ScopePart>,
    history: HistoryPart<'a>,
    /// The checkpoints, newest first.
    #[schema(value_type = Vec<CheckpointPart<'_>>, max_items = 32)]
    #[serde(borrow, default)]
    checkpoints: List<CheckpointPart<'a>, 0, { CHECKPOINTS_MAX as usize }>,
    /// The number of the next checkpoint. Absent if the thread never had a checkpoint.
    #[schema(nullable = false, value_type = Option<u32>, minimum = 2)]
    #[serde(skip_serializing_if = "Option::is_none")]
    next_checkpoint: Option<Whole<2, { u32::MAX as u64 }>>,
    /// The numbers of the turns. Absent if the thread never had a turn.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<TurnsPart>,
    /// Tool calls, oldest first.
    #[schema(value_type = Vec<EffectPart<'_>>, max_items = 1_000)]
    #[serde(borrow, default, skip_serializing_if = "List::is_empty")]
    effects: List<EffectPart<'a>, 0, EFFECTS_MAX>,
}

/// The numbers of a thread's turns.
#[derive(ToSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[schema(as = ExportedTurns)]
struct TurnsPart {
    /// The number of the last turn.
    #[schema(value_type = u32)]
    last: Whole<0, TURNS_MAX>,
    /// The number of the last turn whose work is complete; 0 if there is no such turn.
    #[schema(value_type = u32)]
    complete: Whole<0, TURNS_MAX>,
}

/// The thread object. An import uses only its id, version, times and TTL.
#[derive(ToSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[schema(as = ExportedThread)]
struct ThreadPart<'a> {
    #[schema(pattern = "^thrd_[a-zA-Z0-9]{27,59}$")]
    id: String,
    #[schema(nullable = false)]
    exists: Option<bool>,
    #[schema(value_type = u64, minimum = 1)]
    version: Whole<1, COUNT_MAX>,
    #[schema(nullable = false, value_type = Option<u64>)]
    size_bytes: Option<Count>,
    #[schema(nullable = false, value_type = Option<u64>)]
    limit_bytes: Option<Count>,
    #[schema(nullable = false, value_type = Option<u64>)]
    keys: Option<Count>,
    #[schema(nullable = false, value_type = Option<Object>)]
    #[serde(borrow)]
    metadata: Option<RawObject<'a>>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
    #[schema(nullable = false, value_type = Option<String>, format = DateTime)]
    expires_at: Option<Time>,
    #[schema(value_type = u64, minimum = 1, maximum = 946_080_000)]
    ttl_seconds: Whole<1, { TTL_MAX.as_secs() }>,
    #[schema(nullable = false, value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<OwnerText>,
}

/// Keys and tasks.
#[derive(ToSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[schema(as = ExportedScope)]
struct ScopePart {
    #[schema(value_type = u64, minimum = 1)]
    version: Whole<1, COUNT_MAX>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
    #[schema(value_type = Vec<KeyPart>, max_items = 256)]
    keys: List<KeyPart, 0, { KV_MAX_KEYS as usize }>,
    #[schema(value_type = Vec<TaskPart>, max_items = 1_000)]
    tasks: List<TaskPart, 0, TASKS_MAX>,
    /// The version of the scope when the tasks were last written; 0 if they were never written.
    #[schema(value_type = u64)]
    tasks_version: Count,
}

/// A key with its value.
#[derive(ToSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[schema(as = ExportedKey)]
struct KeyPart {
    key: String,
    value: String,
    /// When the key expires. Absent if never.
    #[schema(nullable = false, value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Time>,
}

/// A task.
#[derive(ToSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[schema(as = ExportedTask)]
struct TaskPart {
    id: String,
    content: String,
    #[schema(value_type = String)]
    status: TaskStatus,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    active_form: Option<String>,
}

/// The history.
#[derive(ToSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[schema(as = ExportedHistory)]
struct HistoryPart<'a> {
    /// The position of the oldest stored item.
    #[schema(value_type = u64, minimum = 1)]
    first_seq: Whole<1, COUNT_MAX>,
    /// The position of the next item to append.
    #[schema(value_type = u64, minimum = 1)]
    next_seq: Whole<1, COUNT_MAX>,
    #[schema(value_type = Vec<ItemPart<'_>>)]
    #[serde(borrow)]
    items: List<ItemPart<'a>, 0, ITEMS_MAX>,
}

/// An item of the history.
#[derive(ToSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[schema(as = ExportedItem)]
struct ItemPart<'a> {
    #[schema(value_type = u64, minimum = 1)]
    seq: Whole<1, COUNT_MAX>,
    id: String,
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    #[schema(value_type = Value)]
    #[serde(borrow)]
    value: RawJson<'a>,
}

/// A checkpoint.
#[derive(ToSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[schema(as = ExportedCheckpoint)]
struct CheckpointPart<'a> {
    /// The number of the checkpoint.
    #[schema(value_type = u32, minimum = 1)]
    checkpoint: Whole<1, { u32::MAX as u64 - 1 }>,
    #[schema(nullable = false, value_type = Option<String>, min_length = 1, max_length = 128)]
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<CheckpointNameText>,
    /// The version of the thread when the checkpoint was saved.
    #[schema(value_type = u64, minimum = 1)]
    version: Whole<1, COUNT_MAX>,
    #[schema(nullable = false, value_type = Option<u64>)]
    size_bytes: Option<Count>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    #[schema(value_type = Object)]
    #[serde(borrow)]
    metadata: RawObject<'a>,
    #[schema(value_type = BTreeMap<String, Value>)]
    #[serde(borrow)]
    state: RawObject<'a>,
}

pub(super) fn write(id: &ThreadId, image: &Image, policy: &ThreadPolicy) -> Vec<u8> {
    let state = text_of(&image.state);
    let checkpoints = &image.checkpoints;
    let saved_states = checkpoints.saved.iter().rev();
    let saved_states: Vec<_> = saved_states
        .map(|saved| (saved, text_of(&saved.state)))
        .collect();
    let saved = saved_states.iter();
    let saved = saved.map(|(saved, state)| CheckpointPart::of(saved, state));
    let metadata = RawObject(image.thread.metadata.as_str());
    let owner = || image.thread.owner.clone().map(OwnerText);
    let document = ThreadDocument {
        format: Whole(1),
        thread: ThreadPart {
            id: id.to_string(),
            exists: Some(true),
            version: Whole(image.thread.stamp.version),
            size_bytes: Some(Whole(image.thread.size_bytes)),
            limit_bytes: Some(Whole(policy.max_bytes)),
            keys: Some(Whole(image.thread.keys.into())),
            metadata: Some(metadata),
            created_at: Time(image.thread.created_ms),
            updated_at: Time(image.thread.updated_ms),
            expires_at: Some(Time(image.thread.expires_ms)),
            ttl_seconds: Whole(image.thread.ttl.as_secs().max(1)),
            owner: owner(),
        },
        owner: owner(),
        metadata,
        state: RawObject(&state),
        scope: image.scope.as_ref().map(ScopePart::of),
        history: HistoryPart::of(image.scope.as_ref()),
        checkpoints: List(saved.collect()),
        next_checkpoint: (checkpoints.last > 0).then(|| Whole(u64::from(checkpoints.last) + 1)),
        turns: TurnsPart::of(image.turns),
        effects: List(image.effects.iter().map(EffectPart::of).collect()),
    };
    serde_json::to_vec(&document).expect("text and numbers always serialize")
}

fn text_of(state: &Document) -> String {
    String::from_utf8(state.to_json()).unwrap_or_default()
}

fn read_state(state: RawObject<'_>, max_keys: u32) -> ApiResult<Document> {
    let members = keyed_values_of_any_key(state.0, max_keys)?;
    Ok(members.into_iter().collect())
}

fn read_metadata(metadata: RawObject<'_>) -> ApiResult<Json> {
    Json::parse(metadata.0).map_err(ApiError::InvalidJson)
}

pub(super) fn parse(body: &str, max_keys: u32) -> ApiResult<(ThreadId, Image)> {
    let body = body_object(body, AROUND)?;
    let document: ThreadDocument<'_> = read(&body)?;
    let ThreadPart {
        id,
        version,
        created_at,
        updated_at,
        ttl_seconds,
        ..
    } = document.thread;
    let id = id.parse().map_err(|_| ApiError::InvalidThreadId)?;
    let state = read_state(document.state, max_keys)?;
    let metadata = read_metadata(document.metadata)?;
    let next = document.next_checkpoint.map(|Whole(next)| next as u32);
    let checkpoints = read_checkpoints(document.checkpoints.0, next, max_keys)?;
    let turns = document
        .turns
        .map_or_else(|| Ok(TurnNumbers::default()), TurnsPart::read)?;
    let effects = read_effects(document.effects.0, turns)?;
    let history = document.history;
    let scope = match document.scope {
        Some(scope) => Some(scope.read(history)?),
        None if history.items.0.is_empty() => None,
        None => return Err(invalid("`history` has items, so `scope` must be given")),
    };
    let thread = Thread {
        stamp: Stamp {
            version: version.0,
            life: Life::default(),
        },
        size_bytes: state.size_bytes(),
        keys: state.len(),
        metadata,
        created_ms: created_at.0,
        updated_ms: updated_at.0,
        expires_ms: 0,
        ttl: Duration::from_secs(ttl_seconds.0),
        owner: document.owner.map(|OwnerText(owner)| owner),
    };
    let image = Image {
        thread,
        state,
        scope,
        checkpoints,
        turns,
        effects,
    };
    Ok((id, image))
}

fn read_checkpoints(
    parts: Vec<CheckpointPart<'_>>,
    next: Option<u32>,
    max_keys: u32,
) -> ApiResult<CheckpointImages> {
    let saved = parts.into_iter().map(|part| part.read(max_keys));
    let mut saved = saved.collect::<Result<Vec<_>, _>>()?;
    if !saved.is_sorted_by(|one, other| one.number > other.number) {
        return Err(invalid(
            "`checkpoints` must be in the order of their numbers, the highest first, each given once",
        ));
    }
    let highest = saved.first().map_or(0, |saved| saved.number);
    let last = next.map_or(highest, |next| next - 1);
    if last < highest {
        return Err(invalid(
            "`next_checkpoint` must be above the numbers of all checkpoints",
        ));
    }
    saved.reverse();
    Ok(CheckpointImages { last, saved })
}

impl TurnsPart {
    fn of(numbers: TurnNumbers) -> Option<Self> {
        (numbers.last > 0).then(|| Self {
            last: Whole(numbers.last.into()),
            complete: Whole(numbers.complete.into()),
        })
    }

    fn read(self) -> ApiResult<TurnNumbers> {
        if self.complete.0 > self.last.0 {
            return Err(invalid("`turns.complete` must not be above `turns.last`"));
        }
        Ok(TurnNumbers {
            last: self.last.0 as u32,
            complete: self.complete.0 as u32,
        })
    }
}

fn part_error(error: ScopeError, index: usize) -> ApiError {
    ApiError::ScopePart {
        error,
        index: Some(index),
    }
}

impl ScopePart {
    fn of(scope: &ScopeImage) -> Self {
        let key = |entry: &KeyImage| KeyPart {
            key: entry.key.as_str().to_owned(),
            value: entry.value.as_str().to_owned(),
            expires_at: entry.expires_ms.map(Time),
        };
        let task = |task: &Task| TaskPart {
            id: task.id.clone(),
            content: task.content.clone(),
            status: task.status,
            active_form: task.active_form.clone(),
        };
        Self {
            version: Whole(scope.version),
            created_at: Time(scope.created_ms),
            updated_at: Time(scope.updated_ms),
            keys: List(scope.keys.iter().map(key).collect()),
            tasks: List(scope.tasks.tasks().iter().map(task).collect()),
            tasks_version: Whole(scope.tasks_version),
        }
    }

    fn read(self, history: HistoryPart<'_>) -> ApiResult<ScopeImage> {
        let keys = self.keys.0.into_iter().enumerate();
        let mut keys: Vec<_> = keys
            .map(|(index, key)| key.read().map_err(|error| part_error(error, index)))
            .collect::<Result<_, _>>()?;
        keys.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        if keys.windows(2).any(|pair| pair[0].key == pair[1].key) {
            return Err(invalid("`scope.keys` has a key twice"));
        }
        let tasks = self.tasks.0.into_iter().map(TaskPart::read).collect();
        let tasks = TaskList::new(tasks).map_err(ServiceError::Tasks)?;
        let tasks_version = self.tasks_version.0;
        if tasks_version > self.version.0 || tasks_version == 0 && !tasks.is_empty() {
            return Err(invalid(
                "`scope.tasks_version` must be a version that the scope had, and 0 only without tasks",
            ));
        }
        Ok(ScopeImage {
            version: self.version.0,
            created_ms: self.created_at.0,
            updated_ms: self.updated_at.0,
            keys,
            tasks,
            tasks_version,
            next_seq: history.next_seq.0,
            items: history.read()?,
        })
    }
}

impl KeyPart {
    fn read(self) -> Result<KeyImage, ScopeError> {
        Ok(KeyImage {
            key: ScopeKey::new(self.key, KeyRule::Namespaced)?,
            value: ScopeValue::new(self.value)?,
            expires_ms: self.expires_at.map(|Time(ms)| ms),
        })
    }
}

impl<'a> CheckpointPart<'a> {
    fn of(saved: &'a CheckpointImage, state: &'a str) -> Self {
        Self {
            checkpoint: Whole(saved.number.into()),
            name: saved.name.clone().map(CheckpointNameText),
            version: Whole(saved.version),
            size_bytes: Some(Whole(saved.state.size_bytes())),
            created_at: Time(saved.created_ms),
            metadata: RawObject(saved.metadata.as_str()),
            state: RawObject(state),
        }
    }

    fn read(self, max_keys: u32) -> ApiResult<CheckpointImage> {
        Ok(CheckpointImage {
            number: self.checkpoint.0 as u32,
            name: self.name.map(|CheckpointNameText(name)| name),
            version: self.version.0,
            created_ms: self.created_at.0,
            metadata: read_metadata(self.metadata)?,
            state: read_state(self.state, max_keys)?,
        })
    }
}

impl TaskPart {
    fn read(self) -> NewTask {
        NewTask {
            id: Some(self.id),
            content: self.content,
            status: self.status,
            active_form: self.active_form,
        }
    }
}

impl<'a> HistoryPart<'a> {
    fn of(scope: Option<&'a ScopeImage>) -> Self {
        let item = |item: &'a StoredItem| ItemPart {
            seq: Whole(item.seq),
            id: item.id.to_string(),
            at: Time(item.at_ms),
            value: RawJson(item.value.as_str()),
        };
        Self {
            first_seq: Whole(scope.map_or(1, |scope| scope.history().first_seq)),
            next_seq: Whole(scope.map_or(1, |scope| scope.next_seq)),
            items: List(
                scope.map_or_else(Vec::new, |scope| scope.items.iter().map(item).collect()),
            ),
        }
    }

    fn read(self) -> ApiResult<Vec<StoredItem>> {
        let (first, next) = (self.first_seq.0, self.next_seq.0);
        let mut items: Vec<StoredItem> = Vec::with_capacity(self.items.0.len());
        for (index, item) in self.items.0.into_iter().enumerate() {
            let lowest = items.last().map_or(first, |last| last.seq + 1);
            if !(lowest..next).contains(&item.seq.0) {
                return Err(invalid(
                    "`history.items` must be in the order of `seq`, from `first_seq` and below `next_seq`",
                ));
            }
            items.push(StoredItem {
                seq: item.seq.0,
                id: item.id.parse().map_err(|error| part_error(error, index))?,
                at_ms: item.at.0,
                value: Json::parse(item.value.0).map_err(ApiError::InvalidJson)?,
            });
        }
        if first > next {
            return Err(invalid("`history.first_seq` must not be above `next_seq`"));
        }
        let mut ids = HashSet::with_capacity(items.len());
        if !items.iter().all(|item| ids.insert(item.id.as_str())) {
            return Err(invalid("`history.items` has an id twice"));
        }
        Ok(items)
    }
}
