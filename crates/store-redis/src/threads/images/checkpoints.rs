use redis::Value;

use super::reading::pairs;
use crate::Bucket;
use crate::shared::{state, take};
use crate::threads::arguments::put;
use crate::threads::checkpoints::read_head;
use crate::transport::{Field, Fields, Link, UNKNOWN, command};
use threadkeep_domain::{
    CheckpointImage, CheckpointImages, CheckpointName, Document, Life, ThreadId,
};
use threadkeep_store::{CheckpointHead, StoreError};

const CORRUPT: StoreError = StoreError::Corrupt("a checkpoint that is no state");
const PLAIN: u64 = 1;

pub(super) struct FoundCheckpoints {
    life: Life,
    last: u32,
    heads: Vec<CheckpointHead>,
    saved: Option<Vec<CheckpointImage>>,
}

impl FoundCheckpoints {
    /// Parses the index and the fields of the checkpoints. `copies` is nil if the reply does not contain the fields.
    pub(super) fn read(life: Life, index: &Value, copies: &Value) -> Result<Self, StoreError> {
        let mut last = 0;
        let mut heads = Vec::new();
        for (name, value) in pairs(index)? {
            match name {
                // the number follows the life
                b"L" => last = take(&mut value.get(8..12).ok_or(CORRUPT)?, 4) as u32,
                number => heads.push(read_head(
                    str::from_utf8(number).map_err(|_| UNKNOWN)?,
                    value,
                )?),
            }
        }
        let saved = match copies {
            Value::Array(copies) if copies.len() == heads.len() => {
                let saved = heads.iter().zip(copies).map(|(head, copy)| {
                    let saved = read_saved(life, head, &pairs(copy)?)?;
                    saved.ok_or(CORRUPT)
                });
                Some(saved.collect::<Result<_, _>>()?)
            }
            Value::Nil => None,
            _ => return Err(UNKNOWN),
        };
        Ok(Self {
            life,
            last,
            heads,
            saved,
        })
    }

    /// Returns all checkpoints, and reads their fields if necessary. Returns `None` if a checkpoint has been deleted.
    pub(super) async fn into_images(
        self,
        link: &Link,
        bucket: &Bucket,
        id: &ThreadId,
    ) -> Result<Option<CheckpointImages>, StoreError> {
        let mut saved = match self.saved {
            Some(saved) => saved,
            None => {
                let mut saved = Vec::with_capacity(self.heads.len());
                for head in &self.heads {
                    let mut fields = command("HGETALL");
                    fields.arg(bucket.checkpoint(id, head.number));
                    let fields = Fields::Read(link.calls().read(fields).await?);
                    let Some(read) = read_saved(self.life, head, &fields.pairs()?)? else {
                        return Ok(None);
                    };
                    saved.push(read);
                }
                saved
            }
        };
        saved.sort_unstable_by_key(|saved| saved.number);
        Ok(Some(CheckpointImages {
            last: self.last,
            saved,
        }))
    }
}

/// Returns `None` if the fields are not a checkpoint of `life`.
fn read_saved(
    life: Life,
    head: &CheckpointHead,
    fields: &[Field<'_>],
) -> Result<Option<CheckpointImage>, StoreError> {
    let assembled = state::assemble_content(fields)?;
    let Some((_, content)) = assembled.filter(|(meta, _)| meta.stamp.life == life) else {
        return Ok(None);
    };
    let state = str::from_utf8(&content.state).map_err(|_| CORRUPT)?;
    Ok(Some(CheckpointImage {
        number: head.number,
        name: head.name.clone(),
        version: head.version,
        created_ms: head.created_ms,
        metadata: content.metadata,
        state: Document::parse(state).map_err(|_| CORRUPT)?,
    }))
}

pub(super) fn index(life: Life, image: &CheckpointImages) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut newest = Vec::with_capacity(12);
    put(&mut newest, life.0, 8);
    put(&mut newest, image.last.into(), 4);
    let entries = image.saved.iter().map(|saved| {
        let mut entry = Vec::with_capacity(32);
        for (number, bytes) in [
            (saved.version, 6),
            (saved.state.size_bytes(), 4),
            (saved.held_bytes(), 4),
            (saved.created_ms, 6),
        ] {
            put(&mut entry, number, bytes);
        }
        let name = saved.name.as_ref().map_or("", CheckpointName::as_str);
        entry.extend_from_slice(name.as_bytes());
        (saved.number.to_string().into_bytes(), entry)
    });
    let newest = (image.last > 0).then(|| (b"L".to_vec(), newest));
    newest.into_iter().chain(entries).collect()
}

/// Packs the meta of a checkpoint with `arrays` chunked arrays. The numbers that are set to 0 here are never read.
pub(super) fn meta(life: Life, saved: &CheckpointImage, arrays: u64) -> Vec<u8> {
    let state = &saved.state;
    let member_bytes = if state.is_empty() {
        0
    } else {
        state.size_bytes() - 1
    };
    let mut packed = Vec::with_capacity(64);
    for (number, bytes) in [
        (PLAIN, 1),
        (life.0, 8),
        (saved.version, 6),
        (member_bytes, 4),
        (state.len().into(), 4),
        // created, updated, TTL, and the end of the absolute lifetime
        (0, 6),
        (0, 6),
        (0, 5),
        (0, 6),
        (arrays, 4),
        // grace, number of events, and end of the watch
        (0, 4),
        (0, 4),
        (0, 6),
    ] {
        put(&mut packed, number, bytes);
    }
    packed
}

pub(super) fn numbered(numbers: impl Iterator<Item = (u32, u64)>) -> Vec<u8> {
    let mut packed = Vec::new();
    for (number, fields) in numbers {
        put(&mut packed, number.into(), 4);
        put(&mut packed, fields, 4);
    }
    packed
}
