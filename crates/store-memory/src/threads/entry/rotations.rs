use super::super::answered::Answered;
use super::super::live_thread::LiveThread;
use super::Entry;
use crate::past::Step;
use threadkeep_domain::{EventKind, Refusal, ThreadId, Tombstone};
use threadkeep_store::{Rotate, Rotated, millis};

impl Entry {
    /// Moves the thread to the id `to`, and leaves a tombstone at the old id. Returns the entry for the new id, or
    /// `None` if the thread does not exist.
    pub(crate) fn rotate(
        &mut self,
        to: &ThreadId,
        rotate: &Rotate,
        step: &mut Step<'_>,
    ) -> Result<(Rotated, Option<Self>), Refusal> {
        let now_ms = step.now_ms;
        let heeded = Some(Tombstone::Enforced);
        let replayed = self.open(&rotate.conditions, heeded, step, Answered::rotated)?;
        if let Some(first) = replayed {
            return Ok((first, None));
        }
        let mut living = self.living.take();
        if let Some(living) = &mut living {
            living.slide(now_ms);
            step.log(living, EventKind::Rotated { to: *to });
        }
        let rotated = Rotated {
            id: *to,
            thread: living.as_ref().map(LiveThread::describe),
            replayed: false,
        };
        let key = rotate.conditions.idempotency;
        let answer = || Answered::Rotated(Box::new(rotated.clone()));
        let Some(living) = living else {
            self.remember(key, now_ms, answer);
            return Ok((rotated, None));
        };
        self.tombstone_ends_ms = now_ms.saturating_add(millis(rotate.tombstone));
        self.stale_writes_until_ms = self.tombstone_ends_ms;
        self.is_moved = true;
        let mut moved = Self {
            records: std::mem::take(&mut self.records),
            scope_records: self.scope_records.take(),
            watched_until_ms: std::mem::take(&mut self.watched_until_ms),
            ..Self::default()
        };
        let ends_ms = self.tombstone_ends_ms;
        self.records.remember(key, now_ms, ends_ms, answer);
        moved.living = Some(living);
        moved.remember(key, now_ms, answer);
        Ok((rotated, Some(moved)))
    }
}
