use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use threadkeep_domain::{EventType, EventTypes, ThreadId};
use threadkeep_events::{EventSettings, Events, Notice, SubscribeError, Timing};
use threadkeep_store::Clock;

use crate::conformance::over_every_store;
use crate::conformance::room::{Room, Subject, set};
use crate::support::until;

struct Replica {
    events: Events,
    taken: Arc<Mutex<Vec<Notice>>>,
    is_failing: Arc<AtomicBool>,
}

impl Replica {
    async fn start(room: &Room, types: EventTypes) -> Self {
        Self::start_by(room, types, Clock::system()).await
    }

    async fn start_by(room: &Room, types: EventTypes, clock: Clock) -> Self {
        let settings = EventSettings {
            poll_every: Duration::from_millis(5),
            timing: Timing {
                renew: Duration::from_millis(100),
                first_delay: Duration::from_millis(20),
                tick: Duration::from_millis(20),
                ..Timing::DEFAULT
            },
            clock,
            ..EventSettings::default()
        };
        let replica = Self {
            events: Events::start(Arc::clone(&room.backend), settings),
            taken: Arc::default(),
            is_failing: Arc::default(),
        };
        let (taken, is_failing) = (Arc::clone(&replica.taken), Arc::clone(&replica.is_failing));
        let handler = move |notice: Notice| {
            let is_failing = is_failing.load(Ordering::Relaxed);
            if !is_failing {
                taken.lock().unwrap().push(notice);
            }
            async move { (!is_failing).then_some(()).ok_or("the test says no") }
        };
        let subscribed = replica.events.subscribe("group", types, handler).await;
        subscribed.unwrap();
        replica
    }

    fn taken(&self) -> Vec<Notice> {
        self.taken.lock().unwrap().clone()
    }
}

fn lifecycle_types() -> EventTypes {
    let types = [EventType::ThreadCreated, EventType::ThreadDestroyed];
    types.into_iter().collect()
}

async fn create_and_end(thread: &Subject) {
    thread.merge(&[set("k", "1")]).await;
    thread.destroy().await;
}

fn types_of(notices: &[Notice], thread: ThreadId) -> Vec<EventType> {
    let of_thread = notices
        .iter()
        .filter(|notice| notice.event.thread() == Some(&thread));
    of_thread.map(|notice| notice.event.event_type()).collect()
}

async fn a_subscriber_receives_all_later_events_in_order(room: Room) {
    create_and_end(&room.subject()).await;
    let replica = Replica::start(&room, lifecycle_types()).await;
    let threads: Vec<_> = (0..20).map(|_| room.subject()).collect();

    for thread in &threads {
        create_and_end(thread).await;
    }
    until(async || replica.taken().len() >= 40).await;

    let taken = replica.taken();
    assert_eq!(taken.len(), 40);
    for thread in &threads {
        assert!(
            types_of(&taken, thread.id)
                .into_iter()
                .eq(lifecycle_types().iter())
        );
    }
    for notice in taken {
        let state = notice.archive.map(|archive| archive.state);
        let is_end = notice.event.event_type() == EventType::ThreadDestroyed;
        assert_eq!(state.as_deref(), is_end.then_some(&br#"{"k":1}"#[..]));
    }
    replica.events.shutdown().await;
}

async fn replicas_of_a_group_handle_each_event_once(room: Room) {
    let replicas = [
        Replica::start(&room, lifecycle_types()).await,
        Replica::start(&room, lifecycle_types()).await,
    ];
    // wait until both replicas receive events, because an event may be delivered twice while a replica joins the group
    let created = AtomicUsize::new(0);
    until(async || {
        create_and_end(&room.subject()).await;
        created.fetch_add(1, Ordering::Relaxed);
        replicas.iter().all(|replica| !replica.taken().is_empty())
    })
    .await;
    until(async || {
        let all = replicas.iter().flat_map(Replica::taken);
        let distinct: HashSet<_> = all.map(|notice| notice.event.id).collect();
        distinct.len() == 2 * created.load(Ordering::Relaxed)
    })
    .await;

    let threads: Vec<_> = (0..100).map(|_| room.subject()).collect();
    for thread in &threads {
        create_and_end(thread).await;
    }
    let ids: HashSet<_> = threads.iter().map(|thread| thread.id).collect();
    let taken = || {
        let all = replicas.iter().flat_map(Replica::taken);
        let ours = all.filter(|notice| notice.event.thread().is_some_and(|id| ids.contains(id)));
        ours.collect::<Vec<_>>()
    };
    until(async || taken().len() >= 200).await;
    for replica in &replicas {
        replica.events.shutdown().await;
    }

    assert_eq!(taken().len(), 200);
    for thread in &threads {
        assert_eq!(types_of(&taken(), thread.id).len(), 2);
    }
}

async fn a_group_resumes_at_its_position(room: Room) {
    let first = Replica::start(&room, lifecycle_types()).await;
    create_and_end(&room.subject()).await;
    until(async || first.taken().len() == 2).await;
    first.events.shutdown().await;

    let thread = room.subject();
    create_and_end(&thread).await;
    let second = Replica::start(&room, lifecycle_types()).await;
    until(async || second.taken().len() >= 2).await;

    assert_eq!(types_of(&second.taken(), thread.id).len(), 2);
    assert_eq!(second.taken().len(), 2);
    second.events.shutdown().await;
}

async fn an_event_that_fails_for_a_day_is_parked_and_replayed(room: Room) {
    let clock = Clock::system();
    let replica = Replica::start_by(&room, lifecycle_types(), clock.clone()).await;
    replica.is_failing.store(true, Ordering::Relaxed);
    let thread = room.subject();
    create_and_end(&thread).await;
    let counters = &replica.events.counters().subscribers;
    until(async || counters.failed.get() >= 2).await;

    clock.advance(Duration::from_secs(86_400));
    until(async || counters.parked.get() == 2).await;
    until(async || {
        let page = replica.events.parked("app.group", None, 10).await.unwrap();
        page.parked.len() == 2
    })
    .await;
    replica.is_failing.store(false, Ordering::Relaxed);
    assert_eq!(replica.events.replay("app.group", None).await.unwrap(), 2);
    until(async || replica.taken().len() == 2).await;

    let taken = replica.taken();
    assert!(
        types_of(&taken, thread.id)
            .into_iter()
            .eq(lifecycle_types().iter())
    );
    replica.events.shutdown().await;
}

async fn changes_are_logged_while_a_subscriber_wants_them(room: Room) {
    let types = [EventType::ThreadUpdated].into_iter().collect();
    let replica = Replica::start(&room, types).await;
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;

    until(async || {
        thread.merge(&[set("k", "2")]).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        !replica.taken().is_empty()
    })
    .await;

    let taken = replica.taken();
    assert!(
        taken
            .iter()
            .all(|notice| notice.event.thread() == Some(&thread.id))
    );
    replica.events.shutdown().await;
}

async fn a_group_needs_a_valid_name_and_has_one_subscriber_per_process(room: Room) {
    let replica = Replica::start(&room, lifecycle_types()).await;
    let subscribe = async |group: &str| {
        let handler = async |_: Notice| Ok::<_, std::io::Error>(());
        let handler = move |notice| handler(notice);
        replica
            .events
            .subscribe(group, lifecycle_types(), handler)
            .await
    };

    for group in ["", "a b", "ä", &"a".repeat(61)] {
        assert!(matches!(subscribe(group).await, Err(SubscribeError::Group)));
    }
    assert!(matches!(
        subscribe("group").await,
        Err(SubscribeError::Taken)
    ));
    assert!(subscribe(&"a".repeat(60)).await.is_ok());
    replica.events.shutdown().await;
}

over_every_store!(
    a_subscriber_receives_all_later_events_in_order,
    replicas_of_a_group_handle_each_event_once,
    a_group_resumes_at_its_position,
    an_event_that_fails_for_a_day_is_parked_and_replayed,
    changes_are_logged_while_a_subscriber_wants_them,
    a_group_needs_a_valid_name_and_has_one_subscriber_per_process,
);
