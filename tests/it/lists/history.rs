use std::time::Duration;

use threadkeep_domain::{Event, EventKind};

use super::LocalStamp;

/// Duration of a `Watch` step. At least 5 s from any sum of pauses, so that a slow step cannot change the outcome.
pub(super) const WATCHED: Duration = Duration::from_secs(45);

#[derive(Debug, Default)]
pub(super) struct History {
    expected: Vec<(LocalStamp, &'static str)>,
    /// The version and life (incarnation) of the thread, or `None` if the log already contains the end of that life.
    open: Option<LocalStamp>,
    watched_until: Duration,
}

impl History {
    pub(super) fn watch(&mut self, now: Duration) {
        self.watched_until = self.watched_until.max(now + WATCHED);
    }

    pub(super) fn write(&mut self, stamp: LocalStamp, appends: bool, now: Duration) {
        let (version, life) = stamp;
        if self.open == Some((version - 1, life)) {
            if now < self.watched_until {
                self.expected.push((stamp, "updated"));
            }
            self.open = Some(stamp);
        } else {
            self.begin(stamp, "created");
        }
        if appends && now < self.watched_until {
            self.expected.push((stamp, "appended"));
        }
    }

    pub(super) fn rotate(&mut self, stamp: LocalStamp) {
        self.expected.push((stamp, "rotated"));
    }

    pub(super) fn restore(&mut self, stamp: LocalStamp) {
        self.begin(stamp, "restored");
    }

    pub(super) fn destroy(&mut self, existed: bool) {
        self.end(if existed { "destroyed" } else { "expired" });
    }

    pub(super) fn miss(&mut self) {
        self.end("expired");
    }

    /// Begins a life (incarnation of the thread). If the previous life expired, first adds its expiry to `expected`.
    fn begin(&mut self, stamp: LocalStamp, kind: &'static str) {
        self.miss();
        self.expected.push((stamp, kind));
        self.open = Some(stamp);
    }

    fn end(&mut self, kind: &'static str) {
        self.expected
            .extend(self.open.take().map(|last| (last, kind)));
    }

    /// Checks that `events` are exactly the expected events. Each event has the index of its life (incarnation).
    pub(super) fn check(&self, events: &[(Event, usize)]) -> Result<(), String> {
        let logged = events.iter().map(|(event, life)| {
            let kind = match &event.kind {
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
            (event.sequence, ((event.version, *life), kind))
        });
        let logged: Vec<_> = logged.collect();
        if (1..)
            .zip(&self.expected)
            .map(|(sequence, &event)| (sequence, event))
            .eq(logged.iter().copied())
        {
            Ok(())
        } else {
            Err(format!("expected {:?}, logged {logged:?}", self.expected))
        }
    }
}
