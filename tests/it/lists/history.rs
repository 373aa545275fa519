use std::time::Duration;

use threadkeep_domain::{Event, EventKind};

use super::Mark;

/// Duration of a `Watch` step. Differs from any sum of pauses by at least 5 s, so that slow steps do not matter.
pub(super) const WATCHED: Duration = Duration::from_secs(45);

#[derive(Debug, Default)]
pub(super) struct History {
    told: Vec<(Mark, &'static str)>,
    /// The version and life of the thread, unless the end of that life has been logged.
    open: Option<Mark>,
    watched_until: Duration,
}

impl History {
    pub(super) fn watch(&mut self, now: Duration) {
        self.watched_until = self.watched_until.max(now + WATCHED);
    }

    pub(super) fn write(&mut self, left: Mark, appends: bool, now: Duration) {
        let (version, life) = left;
        if self.open == Some((version - 1, life)) {
            if now < self.watched_until {
                self.told.push((left, "updated"));
            }
            self.open = Some(left);
        } else {
            self.begin(left, "created");
        }
        if appends && now < self.watched_until {
            self.told.push((left, "appended"));
        }
    }

    pub(super) fn rotate(&mut self, left: Mark) {
        self.told.push((left, "rotated"));
    }

    pub(super) fn restore(&mut self, left: Mark) {
        self.begin(left, "restored");
    }

    pub(super) fn destroy(&mut self, existed: bool) {
        self.end(if existed { "destroyed" } else { "expired" });
    }

    pub(super) fn miss(&mut self) {
        self.end("expired");
    }

    /// Begins a life. If the previous life expired, its expiry is logged first.
    fn begin(&mut self, left: Mark, word: &'static str) {
        self.miss();
        self.told.push((left, word));
        self.open = Some(left);
    }

    fn end(&mut self, word: &'static str) {
        self.told.extend(self.open.take().map(|last| (last, word)));
    }

    /// Checks that `events`, each with the index of its life, are the expected events and no others.
    pub(super) fn check(&self, events: &[(Event, usize)]) -> Result<(), String> {
        let told = events.iter().map(|(event, life)| {
            let word = match &event.kind {
                EventKind::Created { restored: true, .. } => "restored",
                EventKind::Created { .. } => "created",
                EventKind::Updated { .. } => "updated",
                EventKind::Destroyed { reason, .. } => reason.as_str(),
                EventKind::Completed(_) => "completed",
                EventKind::KvUpdated { .. } => "kv",
                EventKind::Rotated { .. } => "rotated",
                EventKind::TaskListUpdated => "tasks",
                EventKind::HistoryAppended { .. } => "appended",
                EventKind::Forked { .. } => "forked",
            };
            (event.sequence, ((event.version, *life), word))
        });
        let told: Vec<_> = told.collect();
        if (1..)
            .zip(&self.told)
            .map(|(at, &told)| (at, told))
            .eq(told.iter().copied())
        {
            Ok(())
        } else {
            Err(format!("of {:?} was {told:?}", self.told))
        }
    }
}
