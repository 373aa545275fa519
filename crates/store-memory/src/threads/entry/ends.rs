use std::time::Duration;

use super::super::answered::Answered;
use super::super::live_thread::LiveThread;
use super::super::records::Records;
use super::Entry;
use crate::log::names;
use crate::past::Step;
use threadkeep_domain::{EndReason, EventKind, Life, Refusal, Thread, ThreadPolicy};
use threadkeep_store::{Destroy, Destroyed, millis};

impl Entry {
    /// Ends the thread. If `has_room` is false, does not remember the result for an id without a thread, because
    /// clients could otherwise fill the memory with such results.
    pub(crate) fn destroy(
        &mut self,
        destroy: &Destroy,
        has_room: bool,
        step: &mut Step<'_>,
    ) -> Result<Destroyed, Refusal> {
        let now_ms = step.now_ms;
        let replayed = self.open(&destroy.conditions, None, step, Answered::destroyed)?;
        if let Some(first) = replayed {
            return Ok(first);
        }
        let living = self.living.take();
        let destroyed = Destroyed {
            existed: living.is_some(),
            replayed: false,
        };
        if let Some(living) = living {
            step.end(living, EndReason::Destroyed, now_ms);
            self.tombstone_ends_ms = now_ms.saturating_add(millis(destroy.tombstone));
            self.stale_writes_until_ms = self.tombstone_ends_ms;
            self.is_moved = false;
            self.shorten_answers(self.tombstone_ends_ms, now_ms);
        }
        if has_room || destroyed.existed {
            let key = destroy.conditions.idempotency;
            let ends_ms = self.tombstone_ends_ms;
            self.records
                .remember(key, now_ms, ends_ms, || Answered::Destroyed(destroyed));
        }
        Ok(destroyed)
    }

    pub(crate) fn erase(&mut self, tombstone: Duration, step: &mut Step<'_>) -> Option<LiveThread> {
        let mut living = self.living.take()?;
        step.log_erased(&mut living);
        self.leave_tombstone(tombstone, step.now_ms);
        Some(living)
    }

    /// Removes all remembered results. If the id has no thread, also leaves a tombstone, which rejects late writes.
    pub(crate) fn leave_tombstone(&mut self, tombstone: Duration, now_ms: u64) {
        self.forget_answers();
        if self.living.is_none() {
            let ends_ms = now_ms.saturating_add(millis(tombstone));
            self.tombstone_ends_ms = self.tombstone_ends_ms.max(ends_ms);
            self.stale_writes_until_ms = self.stale_writes_until_ms.max(ends_ms);
        }
    }

    pub(crate) fn forget_answers(&mut self) {
        self.records = Records::default();
        self.scope_records = None;
    }

    pub(crate) fn restore(
        &mut self,
        life: Option<Life>,
        policy: &ThreadPolicy,
        step: &mut Step<'_>,
    ) -> Result<Option<Thread>, Refusal> {
        self.sweep(step);
        if let Some(living) = &self.living {
            return Err(Refusal::VersionMismatch {
                current: living.stamp,
            });
        }
        let Some(mut living) = step.restore(life, policy) else {
            return Ok(None);
        };
        let kind = EventKind::Created {
            keys: names::of_document(&living.document),
            restored: true,
        };
        step.log(&mut living, kind);
        self.tombstone_ends_ms = 0;
        self.stale_writes_until_ms = 0;
        Ok(Some(self.living.insert(living).describe()))
    }
}
