//! Stages the keys of an import in its thread's hash slot, in several calls, so that the final call can rename them.

use super::checkpoints;
use crate::scopes::images as scope_images;
use crate::shared::Header;
use crate::shared::member::{field, plain_text};
use crate::threads::effects::record;
use crate::transport::{Command, Link};
use crate::{Bucket, Script};
use threadkeep_domain::{CheckpointImages, Document, Image, Life, Value};
use threadkeep_store::StoreError;

/// Approximate maximum number of arguments, and of their bytes, per call.
const PORTION_ARGUMENTS: usize = 2_000;
const PORTION_BYTES: usize = 262_144;
/// Lifetime of staged keys until the final step.
const STAGING_TTL_MS: u64 = 60_000;
/// Number of fields of a checkpoint besides its state.
const OWN_FIELDS: u64 = 2;

pub(super) struct Prepared {
    pub(super) life: Life,
    thread: String,
    scope: String,
    history: String,
    ids: String,
    index: String,
    effects: String,
    pub(super) fields: u64,
    /// Number of chunked arrays in the state.
    pub(super) arrays: u64,
    /// The meta of the scope without its life. Empty if there is no scope.
    pub(super) scope_meta: Vec<u8>,
    pub(super) scope_fields: u64,
    pub(super) items: u64,
    pub(super) index_fields: u64,
    pub(super) effect_fields: u64,
    /// Packed: number and fields of each checkpoint.
    pub(super) checkpoints: Vec<u8>,
}

impl Prepared {
    pub(super) fn new(bucket: &Bucket, image: &Image) -> Self {
        let key = bucket.prepared(rand::random());
        let life = Life::random();
        let (fields, arrays) = measure(&image.state);
        let saved = image.checkpoints.saved.iter();
        let saved = saved.map(|saved| (saved.number, measure(&saved.state).0 + OWN_FIELDS));
        let scope = image.scope.as_ref();
        Self {
            life,
            thread: format!("{key}:t"),
            scope: format!("{key}:k"),
            history: format!("{key}:y"),
            ids: format!("{key}:z"),
            index: format!("{key}:p"),
            effects: format!("{key}:f"),
            fields: fields + u64::from(!turns(image).is_empty()),
            arrays,
            scope_meta: scope.map_or_else(Vec::new, scope_images::meta),
            scope_fields: scope.map_or(0, |scope| scope_images::fields(scope).count() as u64),
            items: scope.map_or(0, |scope| scope.items.len() as u64),
            index_fields: checkpoints::index(life, &image.checkpoints).len() as u64,
            effect_fields: record::fields(&image.effects, image.turns).len() as u64,
            checkpoints: checkpoints::numbered(saved),
        }
    }

    /// Returns the keys in the order of the script's KEYS.
    pub(super) fn keys(&self) -> [&String; 6] {
        [
            &self.thread,
            &self.scope,
            &self.history,
            &self.ids,
            &self.index,
            &self.effects,
        ]
    }

    pub(super) async fn send(&self, link: &Link, image: &Image) -> Result<(), StoreError> {
        let mut portion = Portion::new(link, Script::StageFields, vec![&self.thread]);
        add_state(&mut portion, &image.state).await?;
        let turns = turns(image);
        if !turns.is_empty() {
            portion.add(&[b"N".as_slice(), &turns]).await?;
        }
        portion.end().await?;
        let mut portion = Portion::new(link, Script::StageFields, vec![&self.effects]);
        for [name, value] in record::fields(&image.effects, image.turns) {
            portion.add(&[&name, &value]).await?;
        }
        portion.end().await?;
        self.send_checkpoints(link, &image.checkpoints).await?;
        let Some(scope) = &image.scope else {
            return Ok(());
        };
        let mut portion = Portion::new(link, Script::StageFields, vec![&self.scope]);
        for (name, value) in scope_images::fields(scope) {
            portion.add(&[&name, &value]).await?;
        }
        portion.end().await?;
        let keys = vec![&self.history, &self.ids];
        let mut portion = Portion::new(link, Script::StageItems, keys);
        for item in &scope.items {
            let arguments = scope_images::item(item);
            portion
                .add(&arguments.each_ref().map(|argument| &**argument))
                .await?;
        }
        portion.end().await
    }

    async fn send_checkpoints(
        &self,
        link: &Link,
        image: &CheckpointImages,
    ) -> Result<(), StoreError> {
        for saved in &image.saved {
            let key = format!("{}:{}", self.index, saved.number);
            let (_, arrays) = measure(&saved.state);
            let meta = checkpoints::meta(self.life, saved, arrays);
            let mut portion = Portion::new(link, Script::StageFields, vec![&key]);
            let metadata = saved.metadata.as_str().as_bytes();
            portion.add(&[b"M".as_slice(), &meta]).await?;
            portion.add(&[b"D".as_slice(), metadata]).await?;
            add_state(&mut portion, &saved.state).await?;
            portion.end().await?;
        }
        let mut portion = Portion::new(link, Script::StageFields, vec![&self.index]);
        for (name, value) in checkpoints::index(self.life, image) {
            portion.add(&[&name, &value]).await?;
        }
        portion.end().await
    }
}

fn turns(image: &Image) -> Vec<u8> {
    record::turns(image.turns, !image.effects.is_empty())
}

fn measure(state: &Document) -> (u64, u64) {
    let (mut fields, mut arrays) = (0, 0);
    for (_, value) in state.iter() {
        fields += 1;
        if let (None, Value::Array(array)) = (plain_text(value), value) {
            arrays += 1;
            fields += array.chunks().len() as u64;
        }
    }
    (fields, arrays)
}

async fn add_state(portion: &mut Portion<'_>, state: &Document) -> Result<(), StoreError> {
    let mut array_id = 0;
    for (key, value) in state.iter() {
        match (plain_text(value), value) {
            (Some(text), _) => portion.add(&[&field(key), &text]).await?,
            (None, Value::Array(array)) => {
                let chunks = array.chunks();
                let last = chunks.len().saturating_sub(1);
                let mut ordinal = 0;
                for (number, (elements, len)) in chunks.enumerate() {
                    let mut chunk = ordinal.to_string().into_bytes();
                    chunk.extend_from_slice(elements);
                    if number == last {
                        let header = Header::of(array, array_id, last as u64, chunk.len());
                        portion.add(&[&field(key), &header]).await?;
                    }
                    let name = format!("c{array_id}:{number}");
                    portion.add(&[name.as_bytes(), &chunk]).await?;
                    ordinal += len;
                }
                array_id += 1;
            }
            (None, Value::Text(_)) => {}
        }
    }
    Ok(())
}

/// Collects arguments for a script, and sends a call when the arguments fill it. Each call is idempotent.
struct Portion<'a> {
    link: &'a Link,
    script: Script,
    keys: Vec<&'a String>,
    cmd: Option<Command>,
    arguments: usize,
    bytes: usize,
}

impl<'a> Portion<'a> {
    fn new(link: &'a Link, script: Script, keys: Vec<&'a String>) -> Self {
        Self {
            link,
            script,
            keys,
            cmd: None,
            arguments: 0,
            bytes: 0,
        }
    }

    async fn add(&mut self, arguments: &[&[u8]]) -> Result<(), StoreError> {
        let bytes = arguments
            .iter()
            .map(|argument| argument.len())
            .sum::<usize>();
        if self.arguments + arguments.len() > PORTION_ARGUMENTS
            || self.bytes + bytes > PORTION_BYTES
        {
            self.end().await?;
        }
        let (script, keys) = (self.script, &self.keys);
        let cmd = self.cmd.get_or_insert_with(|| {
            let mut cmd = script.call(keys.len());
            cmd.args(keys.iter().copied()).arg(STAGING_TTL_MS);
            cmd
        });
        cmd.args(arguments.iter().copied());
        self.arguments += arguments.len();
        self.bytes += bytes;
        Ok(())
    }

    async fn end(&mut self) -> Result<(), StoreError> {
        let Some(cmd) = self.cmd.take() else {
            return Ok(());
        };
        self.arguments = 0;
        self.bytes = 0;
        self.link.calls().read(cmd).await.map(drop)
    }
}
