use std::time::Duration;

use threadkeep_domain::{Event, EventKind, Json, Position};
use threadkeep_store::{Archive, Reaped, Watched};

use super::room::{Room, Subject};

/// Number of events per read, small enough that most logs span several pages.
const PAGE: usize = 3;
const BATCH: usize = 50;
/// Maximum number of rounds in which a reaper (a background task) ends all expired threads.
const ROUNDS: usize = 1_000;

impl Room {
    pub(crate) fn bucket(&self, thread: &Subject) -> u16 {
        self.backend.bucket_of(&thread.id)
    }

    fn buckets(&self) -> Vec<u16> {
        (0..self.backend.buckets()).collect()
    }

    pub(crate) async fn log(&self, bucket: u16, mut after: Position) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        loop {
            let read = self.backend.read_log(&[(bucket, after)], PAGE).await;
            let page = read.unwrap().pop().unwrap();
            let is_last = page.len() < PAGE;
            events.extend(page);
            match events.last() {
                Some(last) if !is_last => after = last.id.position,
                _ => return events,
            }
        }
    }

    pub(crate) async fn events(&self, thread: &Subject) -> Vec<Event> {
        let mut events = self.log(self.bucket(thread), Position::default()).await;
        events.retain(|event| event.thread() == Some(&thread.id));
        events
    }

    pub(crate) async fn story(&self, thread: &Subject) -> Vec<String> {
        self.events(thread).await.iter().map(words).collect()
    }

    pub(crate) async fn watch(&self, thread: &Subject, lasts: Duration) -> Watched {
        let watched = self.backend.watch(&[thread.id], lasts).await.unwrap();
        watched[0]
    }

    /// Ends all expired threads, as a reaper does. An embedded store may already have ended some of them.
    pub(crate) async fn reap(&self) -> Reaped {
        let buckets = self.buckets();
        let mut total = Reaped::default();
        for _ in 0..ROUNDS {
            let due = self.backend.due(&buckets, BATCH).await.unwrap();
            assert!(due.skew_ms.abs() < 10_000, "{}", due.skew_ms);
            assert_eq!(due.ids.len(), buckets.len());
            if due.ids.iter().all(Vec::is_empty) {
                return total;
            }
            for (bucket, ids) in buckets.iter().zip(&due.ids) {
                if !ids.is_empty() {
                    let reaped = self.backend.end_due(*bucket, ids).await.unwrap();
                    total.ended += reaped.ended;
                    total.lost += reaped.lost;
                    total.moved += reaped.moved;
                }
            }
        }
        panic!("expired threads remain: {total:?}");
    }

    pub(crate) async fn is_due(&self, thread: &Subject) -> bool {
        let due = self.backend.due(&[self.bucket(thread)], 1_000).await;
        due.unwrap().ids[0].contains(&thread.id)
    }

    pub(crate) async fn tidy(&self) {
        let buckets = self.buckets();
        let mut slowest = vec![None; buckets.len()];
        for consumer in self.backend.consumers().await.unwrap() {
            let cursors = self.backend.load_cursors(&consumer).await.unwrap();
            for (slowest, cursor) in slowest.iter_mut().zip(cursors.unwrap()) {
                *slowest = Some(slowest.map_or(cursor, |other: Position| other.min(cursor)));
            }
        }
        self.backend.tidy(&buckets, &slowest).await.unwrap();
    }

    pub(crate) async fn archive(&self, thread: &Subject) -> Option<Archive> {
        self.backend.get_archive(&thread.id, None).await.unwrap()
    }
}

/// Formats an event as `#<sequence> v<version> <kind and details>`.
pub(crate) fn words(event: &Event) -> String {
    let details = match &event.kind {
        EventKind::Created { keys, restored } => {
            format!("created {}{}", list(keys), flag(*restored, " restored"))
        }
        EventKind::Updated { keys, metadata } => {
            format!("updated {}{}", list(keys), flag(*metadata, " metadata"))
        }
        EventKind::Destroyed { reason, state_lost } => {
            format!("{}{}", reason.as_str(), flag(*state_lost, " lost"))
        }
        EventKind::Completed(completed) => format!(
            "completed {} {} {}",
            completed.session, completed.status, completed.duration_ms
        ),
        EventKind::KvUpdated { keys } => format!("kv {}", list(keys)),
        EventKind::Rotated { .. } => "rotated".into(),
        EventKind::TaskListUpdated => "tasks".into(),
        EventKind::HistoryAppended {
            first_seq,
            last_seq,
        } => format!("appended {first_seq}-{last_seq}"),
        EventKind::Forked { origin } => format!("forked {} v{}", origin.id, origin.version),
    };
    format!("#{} v{} {details}", event.sequence, event.version)
}

fn list(keys: &Option<Json>) -> &str {
    keys.as_ref().map_or("many", Json::as_str)
}

fn flag(is_set: bool, word: &str) -> &str {
    if is_set { word } else { "" }
}
