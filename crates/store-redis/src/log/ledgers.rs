use std::collections::HashMap;

use async_trait::async_trait;
use bytes::Bytes;
use redis::Value;

use super::entries;
use crate::transport::{Command, UNKNOWN, array, command, integer, text};
use crate::{BUCKETS, ConsumerKeys, RedisStore, Script, Unreadable};
use threadkeep_domain::{EventId, Position};
use threadkeep_store::{
    Holding, Ledger, LedgerChange, LedgerSignals, Ledgers, PendingEvents, StoreError,
};
use threadkeep_store::{PARKED_MAX, log_dropped_events};

#[async_trait]
impl Ledgers for RedisStore {
    async fn open_ledger(&self, consumer: &str, start: &[Position]) -> Result<(), StoreError> {
        let keys = self.names.consumer(consumer);
        // stores all positions at once, because a ledger with missing cursors is invalid
        let mut cmd = Script::OpenLedger.call(1);
        cmd.arg(&keys.ledger);
        for position in start {
            cmd.arg(position.to_string());
        }
        let mut list = command("SADD");
        list.arg(self.names.consumers()).arg(consumer);
        // the consumer is listed first, because a listed consumer without a ledger is harmless: it retains no events
        self.background
            .calls()
            .read_all([list, cmd])
            .await
            .map(drop)
    }

    async fn drop_ledger(&self, consumer: &str) -> Result<(), StoreError> {
        let keys = self.names.consumer(consumer);
        let mut cmd = command("UNLINK");
        cmd.arg(self.names.pool(consumer))
            .arg(keys.ledger)
            .arg(keys.pending)
            .arg(keys.parked)
            .arg(keys.parked_order);
        let mut list = command("SREM");
        list.arg(self.names.consumers()).arg(consumer);
        self.background
            .calls()
            .read_all([cmd, list])
            .await
            .map(drop)
    }

    async fn consumers(&self) -> Result<Vec<String>, StoreError> {
        let mut cmd = command("SMEMBERS");
        cmd.arg(self.names.consumers());
        let names = match self.background.calls().read(cmd).await? {
            Value::Set(names) | Value::Array(names) => names,
            _ => return Err(UNKNOWN),
        };
        names
            .iter()
            .map(|name| Ok(text(name)?.to_owned()))
            .collect()
    }

    async fn load_ledger(&self, consumer: &str) -> Result<Option<Ledger>, StoreError> {
        let keys = self.names.consumer(consumer);
        let mut pending = command("HGETALL");
        pending.arg(&keys.pending);
        // reads the signals first, so that the other values are at least as recent as the signals
        let cmds = [signals(&keys), cursors(&keys), note(&keys), pending];
        let [signals, cursors, note, pending] = self.background.calls().read_all(cmds).await?;
        let Some(cursors) = positions(cursors)? else {
            return Ok(None);
        };
        Ok(Some(Ledger {
            cursors,
            pending: records(pending, &self.unreadable)?,
            note: match note {
                Value::Nil => None,
                note => Some(Bytes::copy_from_slice(crate::transport::replies::bytes(
                    &note,
                )?)),
            },
            signals: counts(signals)?,
        }))
    }

    async fn load_cursors(&self, consumer: &str) -> Result<Option<Vec<Position>>, StoreError> {
        let keys = self.names.consumer(consumer);
        positions(self.background.calls().read(cursors(&keys)).await?)
    }

    async fn commit(
        &self,
        holding: &Holding<'_>,
        change: &LedgerChange,
    ) -> Result<bool, StoreError> {
        let keys = self.names.consumer(holding.consumer);
        let mut cmd = Script::Commit.call(5);
        cmd.arg(self.names.pool(holding.consumer))
            .arg(&keys.ledger)
            .arg(&keys.pending)
            .arg(&keys.parked)
            .arg(&keys.parked_order)
            .arg(self.ahead())
            .arg(holding.slot)
            .arg(holding.holder)
            .arg(holding.erasures)
            .arg(PARKED_MAX);
        for (bucket, position) in &change.cursors {
            cmd.arg("c").arg(*bucket).arg(position.to_string());
        }
        for (event, record) in &change.pending {
            cmd.arg("p").arg(name(event)).arg(&record[..]);
        }
        for event in &change.done {
            cmd.arg("d").arg(name(event));
        }
        for (event, record) in &change.parked {
            cmd.arg("k").arg(name(event)).arg(&record[..]);
        }
        if let Some(note) = &change.note {
            cmd.arg("n").arg(&note[..]);
        }
        // a repeated commit changes nothing
        let reply = array(self.background.calls().read(cmd).await?)?;
        let [done, given_up] = &reply[..] else {
            return Err(UNKNOWN);
        };
        log_dropped_events(holding.consumer, integer(given_up)?);
        Ok(integer(done)? == 1)
    }

    async fn signals(&self, consumer: &str) -> Result<LedgerSignals, StoreError> {
        let keys = self.names.consumer(consumer);
        counts(self.background.calls().read(signals(&keys)).await?)
    }

    async fn forget_events(
        &self,
        consumer: &str,
        events: &[(EventId, Option<Bytes>)],
    ) -> Result<(), StoreError> {
        let keys = self.names.consumer(consumer);
        let mut cmd = Script::ForgetEvents.call(4);
        cmd.arg(&keys.ledger)
            .arg(&keys.pending)
            .arg(&keys.parked)
            .arg(&keys.parked_order);
        for (event, record) in events {
            cmd.arg(name(event))
                .arg(record.as_deref().unwrap_or_default());
        }
        // a retry increments the number of erasures again, which makes no difference to lease holders
        self.link.calls().write_idempotent(cmd).await.map(drop)
    }

    async fn pending(&self, consumer: &str, limit: usize) -> Result<PendingEvents, StoreError> {
        let keys = self.names.consumer(consumer);
        let mut size = command("HLEN");
        size.arg(&keys.pending);
        let total = integer(&self.link.calls().read(size).await?)?;
        let (mut events, mut cursor) = (HashMap::new(), "0".to_owned());
        // a loop and a map, because HSCAN may return an empty batch, or return a field twice
        while events.len() < limit {
            let mut scan = command("HSCAN");
            scan.arg(&keys.pending).arg(&cursor).arg("COUNT").arg(limit);
            let reply = array(self.link.calls().read(scan).await?)?;
            let [next, fields] = <[Value; 2]>::try_from(reply).map_err(|_| UNKNOWN)?;
            let fields = array(fields)?;
            let records = fields
                .chunks_exact(2)
                .map(|pair| record((pair[0].clone(), pair[1].clone())));
            events.extend(self.unreadable.skip("pending events", records));
            cursor = text(&next)?.to_owned();
            if cursor == "0" {
                break;
            }
        }
        let some = events.into_iter().take(limit).collect();
        Ok(PendingEvents { some, total })
    }

    async fn parked(
        &self,
        consumer: &str,
        after: Option<EventId>,
        limit: usize,
    ) -> Result<Vec<(EventId, Bytes)>, StoreError> {
        let keys = self.names.consumer(consumer);
        let mut cmd = command("ZRANGEBYLEX");
        cmd.arg(&keys.parked_order)
            .arg(after.map_or_else(|| "-".into(), |after| format!("({}", name(&after))))
            .arg("+")
            .arg("LIMIT")
            .arg(0)
            .arg(limit);
        let names = array(self.link.calls().read(cmd).await?)?;
        let cmds = names.iter().map(|name| {
            let mut cmd = command("HGET");
            cmd.arg(&keys.parked).arg(text(name).unwrap_or_default());
            cmd
        });
        let records = self.link.calls().read_many(cmds).await?;
        let pairs = names.into_iter().zip(records);
        // an event that was replayed in the meantime is no longer parked
        let pairs = pairs.filter(|(_, record)| *record != Value::Nil);
        Ok(self.unreadable.skip("parked events", pairs.map(record)))
    }

    async fn replay(
        &self,
        consumer: &str,
        records: &[(EventId, Bytes)],
    ) -> Result<u64, StoreError> {
        let keys = self.names.consumer(consumer);
        let mut cmd = Script::Replay.call(4);
        cmd.arg(&keys.ledger)
            .arg(&keys.pending)
            .arg(&keys.parked)
            .arg(&keys.parked_order);
        for (event, record) in records {
            cmd.arg(name(event)).arg(&record[..]);
        }
        integer(&self.link.calls().write(cmd).await?)
    }
}

fn cursors(keys: &ConsumerKeys) -> Command {
    let mut cmd = command("HMGET");
    cmd.arg(&keys.ledger);
    for bucket in 0..BUCKETS {
        cmd.arg(bucket);
    }
    cmd
}

fn note(keys: &ConsumerKeys) -> Command {
    let mut cmd = command("HGET");
    cmd.arg(&keys.ledger).arg("note");
    cmd
}

fn signals(keys: &ConsumerKeys) -> Command {
    let mut cmd = command("HMGET");
    cmd.arg(&keys.ledger).arg("replays").arg("erasures");
    cmd
}

fn counts(reply: Value) -> Result<LedgerSignals, StoreError> {
    match &array(reply)?[..] {
        [replays, erasures] => Ok(LedgerSignals {
            replays: count(replays)?,
            erasures: count(erasures)?,
        }),
        _ => Err(UNKNOWN),
    }
}

fn positions(reply: Value) -> Result<Option<Vec<Position>>, StoreError> {
    let cursors = array(reply)?;
    if cursors.iter().all(|cursor| *cursor == Value::Nil) {
        return Ok(None);
    }
    cursors
        .iter()
        .map(entries::position_or_lowest)
        .collect::<Result<_, _>>()
        .map(Some)
}

fn count(value: &Value) -> Result<u64, StoreError> {
    match value {
        Value::Nil => Ok(0),
        value => integer(value),
    }
}

/// Returns the name of the hash field for an event, in hex. The position precedes the bucket, so that names sort in the
/// order of the events.
fn name(event: &EventId) -> String {
    let Position { ms, seq } = event.position;
    format!("{ms:012x}{seq:010x}{:04x}", event.bucket)
}

fn event(name: &str) -> Result<EventId, StoreError> {
    let number = |range| {
        let digits = name.get(range).ok_or(UNKNOWN)?;
        u64::from_str_radix(digits, 16).map_err(|_| UNKNOWN)
    };
    Ok(EventId {
        bucket: number(22..26)? as u16,
        position: Position {
            ms: number(0..12)?,
            seq: number(12..22)?,
        },
    })
}

fn records(reply: Value, unreadable: &Unreadable) -> Result<Vec<(EventId, Bytes)>, StoreError> {
    match reply {
        Value::Map(pairs) => Ok(unreadable.skip("pending events", pairs.into_iter().map(record))),
        _ => Err(UNKNOWN),
    }
}

fn record((name, record): (Value, Value)) -> Result<(EventId, Bytes), StoreError> {
    match record {
        Value::BulkString(record) => Ok((event(text(&name)?)?, record.into())),
        _ => Err(UNKNOWN),
    }
}
