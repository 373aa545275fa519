use redis::Value;

use super::checkpoints;
use crate::scopes::images as scope_images;
use crate::shared::{Meta, state};
use crate::threads::effects::record;
use crate::threads::{arguments, replies};
use crate::transport::{Command, Field, Link, UNKNOWN, array, bytes, command};
use crate::{RedisStore, ScopeKeys, Script, unless_refused};
use threadkeep_domain::scope::{ScopeId, StoredItem};
use threadkeep_domain::{Access, CheckpointImages, Conditions, Document, Fork, Image, ThreadId};
use threadkeep_store::{StoreError, WriteError};

/// Limits for a history that is read together with its thread. A longer history is read in portions of about this size.
const PORTION_ITEMS: u64 = 1_000;
const PORTION_BYTES: u64 = 262_144;
/// Maximum number of attempts to read a history that is losing items. The last attempt reads the history in one step.
const ATTEMPTS: usize = 4;

pub(super) struct Reading {
    conditions: Conditions,
    is_use: bool,
    checkpoints: CheckpointSelection,
}

enum CheckpointSelection {
    All,
    /// Only the checkpoint with this number, which must exist. `None` selects no checkpoint.
    One(Option<u32>),
}

impl Reading {
    /// Returns the settings for an export, which does not extend the lifetime of the thread.
    pub(super) fn of(access: Access) -> Self {
        Self {
            conditions: Conditions {
                access,
                ..Conditions::default()
            },
            is_use: false,
            checkpoints: CheckpointSelection::All,
        }
    }

    pub(super) fn for_fork(fork: &Fork<'_>) -> Self {
        Self {
            conditions: fork.conditions,
            is_use: true,
            checkpoints: CheckpointSelection::One(fork.checkpoint),
        }
    }
}

impl RedisStore {
    /// Reads a consistent snapshot of a thread. A history that is too long for one step is read afterwards, which is
    /// safe because items do not change, and their total size shows whether the history still has all of them.
    /// Checkpoints do not change either.
    pub(super) async fn read_image(
        &self,
        id: &ThreadId,
        reading: &Reading,
    ) -> Result<Option<Image>, WriteError> {
        let keys = self.names.scope(&ScopeId::Thread(*id));
        for attempt in 1..=ATTEMPTS {
            let limits = match attempt {
                ATTEMPTS => (u64::MAX, u64::MAX),
                _ => (PORTION_ITEMS, PORTION_BYTES),
            };
            let cmd = self.image_command(id, &keys, reading, limits);
            let reply = self.link.calls().read(cmd).await?;
            if reply == Value::Nil {
                return Ok(None);
            }
            let mut found = FoundImage::read(unless_refused(array(reply)?)?)?;
            if let Some(unread) = &mut found.history.unread {
                read_items(&self.link, &keys, unread).await?;
            }
            let bucket = self.names.bucket_of(id);
            let checkpoints = found
                .checkpoints
                .into_images(&self.link, bucket, id)
                .await?;
            if let (Some(image), Some(checkpoints)) =
                (found.history.complete(found.image), checkpoints)
            {
                return Ok(Some(Image {
                    checkpoints,
                    ..image
                }));
            }
        }
        Err(StoreError::Corrupt("a history of another size than its meta says").into())
    }

    fn image_command(
        &self,
        id: &ThreadId,
        keys: &ScopeKeys<'_>,
        reading: &Reading,
        (items, bytes): (u64, u64),
    ) -> Command {
        let mut cmd = Script::Image.call(6);
        cmd.arg(self.names.thread(id))
            .arg(&keys.scope)
            .arg(&keys.history)
            .arg(&keys.ids)
            .arg(self.names.bucket_of(id).checkpoints(id))
            .arg(self.names.bucket_of(id).effects(id))
            .arg(self.ahead())
            .arg(arguments::encode_access(reading.conditions.access))
            .arg(if reading.is_use { "u" } else { "" })
            .arg(arguments::precondition(reading.conditions.precondition))
            .arg(arguments::turn(reading.conditions.turn))
            .arg(items)
            .arg(bytes)
            .arg(match reading.checkpoints {
                CheckpointSelection::All => "*".to_owned(),
                CheckpointSelection::One(number) => {
                    number.map_or_else(String::new, |number| number.to_string())
                }
            });
        cmd
    }
}

/// An image without its checkpoints, and perhaps without its items.
struct FoundImage {
    image: Image,
    history: FoundHistory,
    checkpoints: checkpoints::FoundCheckpoints,
}

#[derive(Default)]
struct FoundHistory {
    unread: Option<UnreadItems>,
    /// Expected total bytes of the items.
    bytes: u64,
}

struct UnreadItems {
    first_seq: u64,
    next_seq: u64,
    portion: u64,
    items: Vec<StoredItem>,
}

impl FoundImage {
    fn read(reply: Vec<Value>) -> Result<Self, StoreError> {
        let [
            meta,
            lives,
            now,
            thread,
            scope_meta,
            scope,
            items,
            index,
            copies,
            effects,
        ] = &reply[..]
        else {
            return Err(UNKNOWN);
        };
        let fields = pairs(thread)?;
        let (_, state) = state::assemble(&fields)?.ok_or(UNKNOWN)?;
        let text = std::str::from_utf8(&state).map_err(|_| UNKNOWN)?;
        let state =
            Document::parse(text).map_err(|_| StoreError::Corrupt("a state of another form"))?;
        let find = |name: &[u8]| fields.iter().find(|(field, _)| *field == name);
        let value =
            |name| find(name).map_or(Value::Nil, |(_, value)| Value::BulkString(value.to_vec()));
        let optional = |name| find(name).map_or(&b""[..], |(_, value)| *value);
        let description = [value(b"D"), lives.clone(), now.clone(), value(b"O")];
        let thread = replies::describe(&Meta::read(bytes(meta)?)?, &description)?;
        let mut image = Image {
            thread: thread.ok_or(UNKNOWN)?,
            state,
            scope: None,
            checkpoints: CheckpointImages::default(),
            turns: record::turn_numbers(optional(b"U"), optional(b"N")),
            effects: record::images(&pairs(effects)?)?,
        };
        let checkpoints =
            checkpoints::FoundCheckpoints::read(image.thread.stamp.life, index, copies)?;
        if *scope_meta == Value::Nil {
            return Ok(Self {
                image,
                history: FoundHistory::default(),
                checkpoints,
            });
        }
        let (scope, history) = scope_images::read(bytes(scope_meta)?, &pairs(scope)?, items)?;
        let unread = (*items == Value::Nil).then(|| {
            let each = (history.bytes / history.len().max(1)).max(1);
            UnreadItems {
                first_seq: history.first_seq,
                next_seq: history.next_seq,
                portion: (PORTION_BYTES / each).clamp(1, PORTION_ITEMS),
                items: Vec::new(),
            }
        });
        image.scope = Some(scope);
        Ok(Self {
            image,
            history: FoundHistory {
                unread,
                bytes: history.bytes,
            },
            checkpoints,
        })
    }
}

impl FoundHistory {
    /// Returns the image if all items of the history were read.
    fn complete(self, mut image: Image) -> Option<Image> {
        if let Some(scope) = &mut image.scope {
            if let Some(unread) = self.unread {
                scope.items = unread.items;
            }
            if scope.history().bytes != self.bytes {
                return None;
            }
        }
        Some(image)
    }
}

async fn read_items(
    link: &Link,
    keys: &ScopeKeys<'_>,
    unread: &mut UnreadItems,
) -> Result<(), StoreError> {
    let mut from = unread.first_seq;
    while from < unread.next_seq {
        let mut cmd = command("XRANGE");
        cmd.arg(&keys.history)
            .arg(format!("{from}-0"))
            .arg(format!("{}-0", unread.next_seq - 1))
            .arg("COUNT")
            .arg(unread.portion);
        let items = scope_images::items(&link.calls().read(cmd).await?)?;
        let Some(last) = items.last() else {
            break;
        };
        from = last.seq + 1;
        unread.items.extend(items);
    }
    Ok(())
}

pub(super) fn pairs(reply: &Value) -> Result<Vec<Field<'_>>, StoreError> {
    let Value::Array(fields) = reply else {
        return Err(UNKNOWN);
    };
    let pairs = fields.chunks_exact(2);
    pairs
        .map(|pair| Ok((bytes(&pair[0])?, bytes(&pair[1])?)))
        .collect()
}
