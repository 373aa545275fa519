use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::*;
use crate::{EventSettings, Events};
use threadkeep_domain::{Key, Operation, ThreadPolicy, Value, Write};
use threadkeep_store::{Clock, EventLog, Store};
use threadkeep_store_memory::MemoryStore;

struct Scene {
    store: MemoryStore,
    clock: Clock,
    events: Events,
    id: ThreadId,
    stream: ThreadStream,
}

impl Scene {
    async fn new() -> Self {
        let clock = Clock::system();
        let store = MemoryStore::new(clock.clone());
        let settings = EventSettings {
            poll_every: Duration::from_millis(2),
            ..EventSettings::default()
        };
        let events = Events::start(Arc::new(store.clone()), settings);
        let id = ThreadId::random();
        write(&store, &id).await;
        let stream = events.thread_stream(&id, None).await.unwrap();
        Self {
            store,
            clock,
            events,
            id,
            stream,
        }
    }

    async fn watch_again(&self) {
        let lifetime = Duration::from_secs(90);
        let watched = self.store.watch(&[self.id], lifetime).await.unwrap()[0];
        let bucket = self.store.bucket_of(&self.id);
        let listeners = self.events.tail().listeners();
        let lapsed = Duration::ZERO;
        listeners.record_watch(bucket, &self.id, Instant::now(), lapsed, watched);
    }

    /// Returns the versions of the next `count` items, negated for resets.
    async fn next_versions(&mut self, count: usize) -> Vec<i64> {
        let mut versions = Vec::new();
        for _ in 0..count {
            let next = timeout(Duration::from_secs(30), self.stream.next());
            versions.push(match next.await.unwrap().unwrap().unwrap() {
                ThreadItem::Event { event, .. } => event.version as i64,
                ThreadItem::Reset { version, .. } => -(version as i64),
            });
        }
        versions
    }
}

async fn write(store: &MemoryStore, id: &ThreadId) {
    store
        .write(id, &Write::new(&ThreadPolicy::THREAD))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_change_during_a_lapsed_watch_causes_a_reset() {
    let mut scene = Scene::new().await;
    scene.clock.advance(Duration::from_secs(100));
    write(&scene.store, &scene.id).await;
    write(&scene.store, &scene.id).await;

    scene.watch_again().await;

    assert_eq!(scene.next_versions(1).await, [-3]);
    write(&scene.store, &scene.id).await;
    assert_eq!(scene.next_versions(1).await, [4]);
}

#[tokio::test]
async fn a_lapsed_watch_without_changes_causes_no_reset() {
    let mut scene = Scene::new().await;
    write(&scene.store, &scene.id).await;
    scene.clock.advance(Duration::from_secs(100));

    scene.watch_again().await;
    write(&scene.store, &scene.id).await;

    assert_eq!(scene.next_versions(2).await, [2, 3]);
    assert_eq!(scene.events.counters().resets.get(), 0);
}

#[tokio::test]
async fn a_reset_precedes_the_event_that_reveals_a_gap() {
    let mut scene = Scene::new().await;
    scene.clock.advance(Duration::from_secs(100));
    write(&scene.store, &scene.id).await;
    let lifetime = Duration::from_secs(90);
    scene.store.watch(&[scene.id], lifetime).await.unwrap();
    write(&scene.store, &scene.id).await;

    assert_eq!(scene.next_versions(2).await, [-3, 3]);
    // the second check also detects the gap, but does not queue another reset
    scene.watch_again().await;
    write(&scene.store, &scene.id).await;
    assert_eq!(scene.next_versions(1).await, [4]);
}
#[tokio::test]
async fn a_resumed_stream_buffers_few_events() {
    let mut scene = Scene::new().await;
    let start = scene.stream.start();
    let key = |number| Key::new(format!("{number:0100}")).unwrap();
    let set = |number| Operation::Set {
        key: key(number),
        value: Value::parse("1").unwrap(),
    };
    let operations: Vec<_> = (0..500).map(set).collect();
    let write = Write {
        operations: &operations,
        ..Write::new(&ThreadPolicy::THREAD)
    };
    for _ in 0..40 {
        scene.store.write(&scene.id, &write).await.unwrap();
    }
    scene.stream = scene
        .events
        .thread_stream(&scene.id, Some(start))
        .await
        .unwrap();

    assert_eq!(scene.next_versions(1).await, [2]);

    assert!(scene.stream.ready.len() < 4, "{}", scene.stream.ready.len());
    assert_eq!(scene.stream.cursor(), None, "more events are ready");
    assert_eq!(scene.next_versions(39).await, (3..=41).collect::<Vec<_>>());
    assert_eq!(scene.events.counters().resets.get(), 0);
    // the tail reads each event once, and the reader reads few events more than once
    let read = scene.events.counters().events_read.get();
    assert!(read <= 4 * 41, "{read}");
}
