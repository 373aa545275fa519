use async_trait::async_trait;
use redis::Value;

use super::{arguments, replies, segments};
use crate::shared::{StepOfResponse, idempotency};
use crate::transport::{Calls, Command, array, command, is_done};
use crate::{RedisStore, ScopeKeys, Script, unless_access_refused};
use threadkeep_domain::scope::{
    Compacted, Compaction, HistorySummary, ItemId, ScopeId, ScopeWrite, ScopeWritten, Segment,
};
use threadkeep_domain::{Access, Life, ThreadId};
use threadkeep_store::{
    Answered, Archives, HistoryFrom, HistoryPage, ItemPosition, Originals, Reader, ScopeEnd,
    ScopeParts, ScopeView, Scopes, StoreError, WriteError,
};

#[async_trait]
impl Scopes for RedisStore {
    async fn read_scope(
        &self,
        scope: &ScopeId,
        parts: &ScopeParts<'_>,
    ) -> Result<Option<ScopeView>, WriteError> {
        let cmd = self.read_scope_command(&self.names.scope(scope), parts);
        let reply = unless_access_refused(self.link.calls().read(cmd).await?)?;
        Ok(replies::view(reply, parts)?)
    }

    async fn read_history(
        &self,
        scope: &ScopeId,
        reader: Reader,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<Option<HistoryPage>, WriteError> {
        let keys = self.names.scope(scope);
        let parts = ScopeParts {
            access: reader.access,
            touch: reader.touch,
            ..ScopeParts::NONE
        };
        let cmds = [
            self.read_scope_command(&keys, &parts),
            range(&keys, from, limit),
        ];
        let [view, items] = self.link.calls().read_all(cmds).await?;
        let Some(view) = replies::view(unless_access_refused(view)?, &parts)? else {
            return Ok(None);
        };
        let mut page = page(view.history, items)?;
        if view.has_segments {
            page.segments = self.read_segments(scope, reader).await?.unwrap_or_default();
        }
        Ok(Some(page))
    }

    async fn read_segments(
        &self,
        scope: &ScopeId,
        reader: Reader,
    ) -> Result<Option<Vec<Segment>>, WriteError> {
        let keys = self.names.scope(scope);
        let mut cmd = self.read_history_command(Script::ReadSegments, &keys, reader.access);
        cmd.arg(arguments::touch_flag(reader));
        let reply = unless_access_refused(self.link.calls().read(cmd).await?)?;
        Ok(segments::read(reply)?)
    }

    async fn read_originals(
        &self,
        scope: &ScopeId,
        reader: Reader,
        selection: Originals,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<Option<HistoryPage>, WriteError> {
        let keys = self.names.scope(scope);
        let mut cmd = self.read_history_command(Script::ReadOriginals, &keys, reader.access);
        let (_, first, end) = bounds(from);
        cmd.arg(arguments::touch_flag(reader))
            .arg(match selection {
                Originals::All => 0,
                Originals::OfSegment(number) => number,
            })
            .arg(if end == "+" { "f" } else { "b" })
            .arg(first)
            .arg(limit.min(i64::MAX as usize));
        let reply = unless_access_refused(self.link.calls().read(cmd).await?)?;
        Ok(segments::page(reply)?)
    }

    async fn find_item(
        &self,
        scope: &ScopeId,
        access: Access,
        id: &ItemId,
    ) -> Result<Option<ItemPosition>, WriteError> {
        let keys = self.names.scope(scope);
        let mut cmd = self.read_history_command(Script::FindItem, &keys, access);
        cmd.arg(id.as_str());
        let reply = unless_access_refused(self.link.calls().read(cmd).await?)?;
        Ok(replies::item_position(reply)?)
    }

    async fn write_scope(
        &self,
        scope: &ScopeId,
        write: &ScopeWrite<'_>,
    ) -> Result<ScopeWritten, WriteError> {
        let reply = self.call_write_scope(scope, write, None).await?;
        replies::written(reply, write)
    }

    async fn compact_history(
        &self,
        id: &ThreadId,
        compaction: &Compaction<'_>,
    ) -> Result<Compacted, WriteError> {
        self.compact(id, compaction).await
    }

    async fn end_scope(
        &self,
        scope: &ScopeId,
        end: &ScopeEnd,
    ) -> Result<Answered<bool>, WriteError> {
        let keys = self.names.scope(scope);
        let mut cmd = Script::EndScope.call(4 + usize::from(keys.thread.is_some()));
        cmd.arg(&keys.scope)
            .arg(&keys.history)
            .arg(&keys.ids)
            .arg(&keys.answers);
        add_thread(&mut cmd, &keys);
        cmd.arg(self.ahead())
            .arg(
                end.expected
                    .map_or_else(String::new, |version| version.to_string()),
            )
            .arg(arguments::turn(end.turn))
            .arg(arguments::encode_access(end.access))
            .arg(idempotency(end.idempotency));
        replies::ended(self.link.calls().write(cmd).await?)
    }

    async fn read_final_history(
        &self,
        id: &ThreadId,
        life: Option<Life>,
        from: HistoryFrom,
        limit: usize,
    ) -> Result<Option<HistoryPage>, StoreError> {
        let Some(archive) = self.get_archive(id, life).await? else {
            return Ok(None);
        };
        let keys = self.names.bucket_of(id).final_scope(id, archive.head.life);
        let items = self.link.calls().read(range(&keys, from, limit)).await?;
        page(archive.head.history, items).map(Some)
    }
}

impl RedisStore {
    /// Runs the script that writes to a scope. If the script would have to drop too many items, first drops items in
    /// separate calls. The write may be a step of a response.
    pub(crate) async fn call_write_scope(
        &self,
        scope: &ScopeId,
        write: &ScopeWrite<'_>,
        step: Option<&StepOfResponse<'_>>,
    ) -> Result<Value, StoreError> {
        let calls = self.link.calls();
        let key = &self.names.watch_all;
        let logs_all = self.interest.logs_all(&calls, key, self.ahead()).await?;
        let keys = self.names.scope(scope);
        let (script, extra_keys) = match step {
            None => (Script::WriteScope, 0),
            Some(_) => (Script::WriteScopeInResponse, 1),
        };
        loop {
            let mut cmd = script.call(5 + usize::from(keys.thread.is_some()) + extra_keys);
            cmd.arg(&keys.scope)
                .arg(&keys.history)
                .arg(&keys.ids)
                .arg(&keys.answers)
                .arg(&keys.bucket.log);
            add_thread(&mut cmd, &keys);
            if let Some(step) = step {
                cmd.arg(&step.key);
            }
            arguments::write(&mut cmd, scope, write, self.ahead(), logs_all);
            if let Some(step) = step {
                step.add_counted_to(&mut cmd);
            }
            let reply = calls.write(cmd).await?;
            let Some(added) = replies::lacks_room(&reply) else {
                return Ok(reply);
            };
            let room = write.policy.history.max_bytes.saturating_sub(added);
            self.make_room(&calls, &keys, room).await?;
        }
    }

    /// Drops the oldest items of a history until its size is at most `bytes`. Drops a thousand items at a time, so that
    /// other calls can run in between. Only needed if a write displaces more items than one script can drop.
    pub(crate) async fn make_room(
        &self,
        calls: &Calls<'_>,
        keys: &ScopeKeys<'_>,
        bytes: u64,
    ) -> Result<(), StoreError> {
        loop {
            let mut cmd = Script::MakeRoom.call(3 + usize::from(keys.thread.is_some()));
            cmd.arg(&keys.scope).arg(&keys.history).arg(&keys.ids);
            add_thread(&mut cmd, keys);
            cmd.arg(self.ahead()).arg(bytes);
            if is_done(&calls.write(cmd).await?)? {
                return Ok(());
            }
        }
    }

    fn read_history_command(
        &self,
        script: Script,
        keys: &ScopeKeys<'_>,
        access: Access,
    ) -> Command {
        let mut cmd = script.call(3 + usize::from(keys.thread.is_some()));
        cmd.arg(&keys.scope).arg(&keys.history).arg(&keys.ids);
        add_thread(&mut cmd, keys);
        cmd.arg(self.ahead()).arg(arguments::encode_access(access));
        cmd
    }

    fn read_scope_command(&self, keys: &ScopeKeys<'_>, parts: &ScopeParts<'_>) -> Command {
        let mut cmd = Script::ReadScope.call(3 + usize::from(keys.thread.is_some()));
        cmd.arg(&keys.scope).arg(&keys.history).arg(&keys.ids);
        add_thread(&mut cmd, keys);
        arguments::read(&mut cmd, parts, self.ahead());
        cmd
    }
}

fn add_thread(cmd: &mut Command, keys: &ScopeKeys<'_>) {
    if let Some(thread) = &keys.thread {
        cmd.arg(thread);
    }
}

fn bounds(from: HistoryFrom) -> (&'static str, String, &'static str) {
    let (name, first, to) = match from {
        HistoryFrom::After(seq) => ("XRANGE", seq.saturating_add(1), "+"),
        HistoryFrom::Before(seq) => ("XREVRANGE", seq.saturating_sub(1), "-"),
    };
    (name, format!("{first}-0"), to)
}

/// Reads a range of a history without a script, because the values can be large.
fn range(keys: &ScopeKeys<'_>, from: HistoryFrom, limit: usize) -> Command {
    let (name, from, to) = bounds(from);
    let mut cmd = command(name);
    cmd.arg(&keys.history)
        .arg(from)
        .arg(to)
        .arg("COUNT")
        .arg(limit.min(i64::MAX as usize));
    cmd
}

fn page(summary: HistorySummary, items: Value) -> Result<HistoryPage, StoreError> {
    let items = match items {
        Value::Nil => Vec::new(),
        items => array(items)?,
    };
    let items = items.iter().map(replies::item);
    Ok(HistoryPage {
        items: items.collect::<Result<_, _>>()?,
        summary,
        segments: Vec::new(),
    })
}
