mod all;
mod feed;
mod reaper;
mod sessions;
mod threads;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use threadkeep_domain::EventTypes;
use threadkeep_events::{
    EventSettings, Events, GlobalItem, GlobalStream, ThreadCursor, ThreadItem, ThreadStream,
    Watermark,
};

use crate::conformance::over_every_store;
use crate::conformance::room::{Room, Subject};
use crate::conformance::story::words;

/// Time limit for an event to arrive, even on a busy machine.
const WAIT_LIMIT: Duration = Duration::from_secs(120);
/// Time after which changes of a thread are not logged if its last subscriber has disconnected.
const WATCH_EXPIRY: Duration = Duration::from_secs(100);

fn replica(room: &Room) -> Events {
    replica_with(room, EventSettings::default())
}

fn replica_with(room: &Room, settings: EventSettings) -> Events {
    let settings = EventSettings {
        poll_every: Duration::from_millis(5),
        ..settings
    };
    Events::start(Arc::clone(&room.backend), settings)
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    let result = tokio::time::timeout(WAIT_LIMIT, future).await;
    result.expect("it should not take so long")
}

struct ThreadSubscriber {
    stream: ThreadStream,
    cursor: ThreadCursor,
}

impl ThreadSubscriber {
    async fn of(events: &Events, thread: &Subject) -> Self {
        Self::after(events, thread, None).await
    }

    async fn after(events: &Events, thread: &Subject, after: Option<ThreadCursor>) -> Self {
        let stream = events.thread_stream(&thread.id, after).await.unwrap();
        let cursor = stream.start();
        Self { stream, cursor }
    }

    async fn recv(&mut self) -> Option<String> {
        let item = soon(self.stream.next()).await.unwrap()?;
        let (cursor, text) = match item {
            ThreadItem::Event { event, cursor } => (cursor, words(&event)),
            ThreadItem::Reset { version, cursor } => (cursor, format!("reset v{version}")),
        };
        self.cursor = cursor;
        Some(text)
    }

    async fn recv_many(&mut self, count: usize) -> Vec<String> {
        let mut received = Vec::new();
        for _ in 0..count {
            received.push(self.recv().await.unwrap());
        }
        received
    }

    async fn assert_quiet(&mut self) {
        let up_to_date = async {
            loop {
                if let Some(cursor) = self.stream.cursor() {
                    return cursor;
                }
                let item = tokio::time::timeout(Duration::from_millis(5), self.stream.next());
                if let Ok(item) = item.await {
                    panic!("{item:?}");
                }
            }
        };
        self.cursor = soon(up_to_date).await;
    }
}

struct GlobalSubscriber {
    stream: GlobalStream,
    cursor: Watermark,
}

impl GlobalSubscriber {
    async fn of(events: &Events, types: EventTypes) -> Self {
        Self::after(events, types, None).await
    }

    async fn after(events: &Events, types: EventTypes, after: Option<Watermark>) -> Self {
        let stream = events.global_stream(types, after).await.unwrap();
        let cursor = stream.start();
        Self { stream, cursor }
    }

    /// Returns the next event of a thread in `threads`, with the thread's index. A reset has the index `threads.len()`.
    async fn recv(&mut self, threads: &[&Subject]) -> Option<(usize, String)> {
        loop {
            let (event, cursor) = match soon(self.stream.next()).await.unwrap()? {
                GlobalItem::Event { event, cursor } => (event, cursor),
                GlobalItem::Reset { cursor } => {
                    self.cursor = cursor;
                    return Some((threads.len(), "reset".into()));
                }
            };
            self.cursor = cursor;
            if let Some(index) = threads
                .iter()
                .position(|thread| Some(&thread.id) == event.thread())
            {
                return Some((index, words(&event)));
            }
        }
    }

    async fn recv_many(&mut self, thread: &Subject, count: usize) -> Vec<String> {
        let mut received = Vec::new();
        for _ in 0..count {
            received.push(self.recv(&[thread]).await.unwrap().1);
        }
        received
    }
}
