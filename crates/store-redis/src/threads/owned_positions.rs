//! Sorts the threads of an owner for a list. In the set for the list by last write, the score of a thread is the time
//! of the first write in its latest time span: see `move_owned` in `lua/shared/prelude.lua`. A page therefore reads
//! more candidates than it needs, and sorts them by their exact times.

use std::cmp::Reverse;

use redis::Value;

use crate::RedisStore;
use crate::shared::Meta;
use crate::transport::{UNKNOWN, array, bytes, command, text};
use threadkeep_domain::{OwnerTag, ThreadId};
use threadkeep_store::merged::{SortedPart, merge};
use threadkeep_store::{OwnedPosition, StoreError, ThreadOrder};

/// Length of a time span. A thread's last write is less than one span later than its score.
const SPAN_MS: u64 = 10_000;
/// Number of extra candidates to read per bucket for a list by last write. Enough for 1,000 threads with recent writes.
const RECENT: usize = 12;

type OwnedPart = SortedPart<Reverse<OwnedPosition>>;

impl RedisStore {
    /// Returns a page of an owner's threads, and the position after which the list continues.
    pub(super) async fn owned_positions(
        &self,
        owner: OwnerTag,
        order: ThreadOrder,
        after: Option<&OwnedPosition>,
        limit: usize,
    ) -> Result<(Vec<OwnedPosition>, Option<OwnedPosition>), StoreError> {
        let by_last_writes = order == ThreadOrder::Updated;
        let mut portion = portion(limit) + if by_last_writes { RECENT } else { 0 };
        loop {
            let mut runs = self.owned_runs(owner, order, after, portion).await?;
            if by_last_writes {
                cut(&mut runs, after, limit);
                self.set_exact_times(&mut runs).await?;
            }
            if let Some(after) = after {
                for run in &mut runs {
                    run.items.retain(|item| *item > Reverse(*after));
                }
            }
            let (positions, next) = merge(runs, limit);
            if !positions.is_empty() || next.is_none() {
                let positions = positions
                    .into_iter()
                    .map(|Reverse(position)| position)
                    .collect();
                return Ok((positions, next.map(|Reverse(position)| position)));
            }
            // a bucket has more threads with the same time, or with recent writes, than a portion holds
            portion *= 8;
        }
    }

    /// Reads a portion of an owner's threads from each bucket, by descending score, starting at `after`.
    async fn owned_runs(
        &self,
        owner: OwnerTag,
        order: ThreadOrder,
        after: Option<&OwnedPosition>,
        portion: usize,
    ) -> Result<Vec<OwnedPart>, StoreError> {
        let highest = after.map_or_else(|| "+inf".to_owned(), |(ms, _)| ms.to_string());
        let cmds = self.names.buckets().iter().map(|bucket| {
            let mut cmd = command("ZREVRANGEBYSCORE");
            cmd.arg(bucket.owned(owner, order))
                .arg(&highest)
                .arg("-inf")
                .arg("WITHSCORES")
                .arg("LIMIT")
                .arg(0)
                .arg(portion);
            cmd
        });
        let replies = self.link.calls().read_many(cmds).await?;
        let run = |reply| {
            let items = positions(reply)?;
            let read_to = items.last().copied().filter(|_| items.len() == portion);
            Ok(SortedPart { items, read_to })
        };
        replies.into_iter().map(run).collect()
    }

    async fn set_exact_times(&self, runs: &mut [OwnedPart]) -> Result<(), StoreError> {
        let items = runs.iter().flat_map(|run| &run.items);
        let cmds = items.map(|Reverse((_, id))| {
            let mut cmd = command("HGET");
            cmd.arg(self.names.thread(id)).arg("M");
            cmd
        });
        let mut metas = self
            .link
            .calls()
            .read_many(cmds.collect::<Vec<_>>())
            .await?
            .into_iter();
        for run in runs {
            for (Reverse((ms, _)), meta) in run.items.iter_mut().zip(&mut metas) {
                // keeps the score of a missing thread, which heads.lua later removes from the list
                if meta != Value::Nil {
                    *ms = Meta::read(bytes(&meta)?)?.updated_ms.max(*ms);
                }
            }
            // unread threads may be up to SPAN_MS newer than the last score, so the run ends SPAN_MS above that score
            run.read_to = run
                .read_to
                .map(|Reverse((ms, _))| Reverse((ms.saturating_add(SPAN_MS), ThreadId::MIN)));
        }
        Ok(())
    }
}

fn positions(reply: Value) -> Result<Vec<Reverse<OwnedPosition>>, StoreError> {
    let position = |pair| match &array(pair)?[..] {
        [id_text, Value::Double(ms)] => Ok(Reverse((*ms as u64, id(id_text)?))),
        _ => Err(UNKNOWN),
    };
    array(reply)?.into_iter().map(position).collect()
}

/// Drops threads that cannot be among the first `limit` threads after `after`, no matter when in its time span each
/// thread was last written.
fn cut(runs: &mut [OwnedPart], after: Option<&OwnedPosition>, limit: usize) {
    let times = runs.iter().flat_map(|run| &run.items);
    let times = times.map(|Reverse((ms, _))| *ms);
    let is_behind = |ms: &u64| after.is_none_or(|(after, _)| ms + SPAN_MS <= *after);
    let mut behind: Vec<_> = times.filter(is_behind).collect();
    if limit == 0 || behind.len() < limit {
        return;
    }
    let (_, last, _) = behind.select_nth_unstable_by_key(limit - 1, |ms| Reverse(*ms));
    let lowest = last.saturating_sub(SPAN_MS);
    for run in runs {
        let kept = run.items.partition_point(|Reverse((ms, _))| *ms >= lowest);
        if kept < run.items.len() {
            run.read_to = Some(run.items[kept]);
            run.items.truncate(kept);
        }
    }
}

/// Returns the number of candidates to read per bucket, which is small because ids are spread evenly over the buckets.
pub(super) fn portion(limit: usize) -> usize {
    4 + limit / 32
}

pub(super) fn id(value: &Value) -> Result<ThreadId, StoreError> {
    text(value)?.parse().map_err(|_| UNKNOWN)
}
