use std::collections::BTreeSet;

use super::super::answered::{Answered, Packed};
use super::super::live_thread::LiveThread;
use super::Entry;
use crate::log::names;
use crate::past::Step;
use threadkeep_domain::{Answer, EventKind, Refusal, Write, Written};
use threadkeep_store::held_scope::appended;

impl Entry {
    pub(crate) fn write(
        &mut self,
        write: &Write<'_>,
        step: &mut Step<'_>,
    ) -> Result<Written, Refusal> {
        let now_ms = step.now_ms;
        let tombstone = Some(write.tombstone);
        let replayed = self.open(&write.conditions, tombstone, step, Answered::written)?;
        if let Some(first) = replayed {
            return Ok(first);
        }
        let is_watched = self.is_watched(step);
        let written = match &mut self.living {
            Some(living) if is_watched => update(living, write, step)?,
            Some(living) => living.write(write, now_ms)?,
            None => {
                let (living, written) = create(write, is_watched, step)?;
                self.living = Some(living);
                self.tombstone_ends_ms = 0;
                written
            }
        };
        self.remember(write.conditions.idempotency, now_ms, || {
            Answered::Written(Packed::new(written.clone()))
        });
        Ok(written)
    }
}

fn create(
    write: &Write<'_>,
    is_watched: bool,
    step: &mut Step<'_>,
) -> Result<(LiveThread, Written), Refusal> {
    let sequence = step.past.ended_threads.sequence(step.id);
    let mut living = LiveThread::new(write.policy, sequence, step.now_ms);
    let written = living.write(write, step.now_ms)?;
    let kind = EventKind::Created {
        keys: names::of_document(&living.document),
        restored: false,
    };
    step.log(&mut living, kind);
    if is_watched {
        log_appended(&mut living, &written, step);
    }
    Ok((living, written))
}

fn update(
    living: &mut LiveThread,
    write: &Write<'_>,
    step: &mut Step<'_>,
) -> Result<Written, Refusal> {
    let mut keys: BTreeSet<_> = names::touched(write.operations, &living.document).collect();
    let written = living.write(write, step.now_ms)?;
    keys.extend(names::touched(write.operations, &living.document));
    names::drop_skipped(&mut keys, write.operations, &written.answers);
    let kind = EventKind::Updated {
        keys: names::of_keys(&keys),
        metadata: write.metadata.is_some(),
    };
    step.log(living, kind);
    log_appended(living, &written, step);
    Ok(written)
}

fn log_appended(living: &mut LiveThread, written: &Written, step: &mut Step<'_>) {
    let items = written.answers.iter().filter_map(|answer| match answer {
        Answer::Appended(_, appended) => Some(appended),
        _ => None,
    });
    if let Some(kind) = appended(items) {
        step.log(living, kind);
    }
}
