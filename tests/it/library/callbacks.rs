use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_web::HttpResponse;
use threadkeep::{CallbackCounts, Session, Thread};
use threadkeep_domain::{Conditions, EndReason, Event, EventKind, ThreadId};
use threadkeep_events::{EventSettings, Events, Notice};
use threadkeep_store::Rotate;
use threadkeep_web::ApiError;

use super::Bench;
use crate::conformance::over_every_store;
use crate::conformance::room::{Room, Subject, set};
use crate::support::until;

const QUICK: Duration = Duration::from_millis(5);

#[derive(Debug, Clone, Default)]
struct Notices(Arc<Mutex<Vec<Notice>>>);

impl Notices {
    fn at_attempt(
        &self,
        attempt: usize,
    ) -> impl Fn(Notice) -> std::future::Ready<io::Result<()>> + Send + Sync + 'static {
        let (notices, calls) = (self.clone(), AtomicUsize::new(0));
        move |notice| {
            let call = calls.fetch_add(1, Ordering::Relaxed) + 1;
            if call < attempt {
                return std::future::ready(Err(io::ErrorKind::TimedOut.into()));
            }
            notices.0.lock().unwrap().push(notice);
            std::future::ready(Ok(()))
        }
    }

    fn all(&self) -> Vec<Notice> {
        self.0.lock().unwrap().clone()
    }

    async fn wait(&self, count: usize) -> Vec<Notice> {
        until(async || self.all().len() >= count).await;
        self.all()
    }
}

fn bench(room: Room) -> (Bench, Events) {
    let settings = EventSettings {
        poll_every: QUICK,
        ..EventSettings::default()
    };
    let events = Events::start(Arc::clone(&room.backend), settings);
    let mut bench = Bench::new(room);
    let threads = bench.threads.clone().with_first_pause(QUICK);
    bench.threads = threads.with_events(events.clone());
    (bench, events)
}

fn registering(
    notices: &Notices,
) -> impl actix_web::Handler<(Thread,), Output = Result<HttpResponse, ApiError>> {
    let notices = notices.clone();
    move |thread: Thread| {
        let notices = notices.clone();
        async move {
            thread.on_destroyed(notices.at_attempt(1)).await?;
            Ok(HttpResponse::Ok().finish())
        }
    }
}

fn reason(event: &Event) -> EndReason {
    match event.kind {
        EventKind::Destroyed { reason, .. } => reason,
        _ => panic!("{event:?}"),
    }
}

async fn started(room: &Room) -> Subject {
    let thread = room.subject();
    thread.merge(&[set("k", "[1.0]")]).await;
    thread.set_metadata(r#"{"m":1}"#).await.unwrap();
    thread
}

async fn a_callback_runs_when_its_thread_expires_or_is_destroyed(room: Room) {
    let (expiring, destroyed, other) = (
        started(&room).await,
        started(&room).await,
        started(&room).await,
    );
    let (bench, _events) = bench(room);
    let notices = [Notices::default(), Notices::default()];
    for (thread, notices) in [&expiring, &destroyed].into_iter().zip(&notices) {
        let response = bench.call_as(&thread.id, registering(notices)).await;
        assert_eq!(response.status(), 200);
    }

    other.destroy().await;
    destroyed.destroy().await;
    let received = notices[1].wait(1).await;
    assert_eq!(reason(&received[0].event), EndReason::Destroyed);
    assert_eq!(received[0].event.thread(), Some(&destroyed.id));
    let archive = received[0].archive.as_ref().unwrap();
    assert_eq!(archive.state, r#"{"k":[1.0]}"#);
    assert_eq!(archive.head.metadata.as_str(), r#"{"m":1}"#);
    assert!(notices[0].all().is_empty());

    bench.room.advance(Duration::from_secs(3_601));
    let received = notices[0].wait(1).await;
    assert_eq!(reason(&received[0].event), EndReason::Expired);
    assert_eq!(
        received[0].archive.as_ref().unwrap().state,
        r#"{"k":[1.0]}"#
    );
}

async fn a_callback_follows_its_thread_to_a_new_id(room: Room) {
    let thread = started(&room).await;
    let (bench, _events) = bench(room);
    let notices = Notices::default();
    bench.call_as(&thread.id, registering(&notices)).await;

    let rotate = Rotate {
        conditions: Conditions::default(),
        tombstone: Duration::ZERO,
    };
    let rotated = thread.store.rotate(&thread.id, &rotate).await.unwrap();
    // a new thread under the old id ends first
    thread.merge(&[]).await;
    thread.destroy().await;
    let new = Subject {
        id: rotated.id,
        ..thread.clone()
    };
    new.destroy().await;

    let received = notices.wait(1).await;
    assert_eq!(received[0].event.thread(), Some(&new.id));
    assert_eq!(
        received[0].archive.as_ref().unwrap().state,
        r#"{"k":[1.0]}"#
    );
}

async fn a_callback_ignores_earlier_and_later_ends(room: Room) {
    let thread = room.subject_under(threadkeep_domain::ThreadPolicy {
        tombstone: Duration::ZERO,
        ..threadkeep_domain::ThreadPolicy::THREAD
    });
    let (bench, _events) = bench(room);
    // first register a callback for a different thread, so that the service is already reading the event log
    let (other, notices) = (Notices::default(), Notices::default());
    let waiting = started(&bench.room).await;
    bench.call_as(&waiting.id, registering(&other)).await;

    thread.merge(&[set("k", "1")]).await;
    thread.destroy().await;
    thread.merge(&[set("k", "2")]).await;
    bench.call_as(&thread.id, registering(&notices)).await;
    thread.destroy().await;
    notices.wait(1).await;
    thread.merge(&[set("k", "3")]).await;
    thread.destroy().await;
    waiting.destroy().await;
    other.wait(1).await;

    let received = notices.all();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].archive.as_ref().unwrap().state, r#"{"k":2}"#);
}

async fn a_callback_runs_for_a_thread_that_its_request_creates_and_ends(room: Room) {
    let (bench, _events) = bench(room);
    let notices = Notices::default();
    let listener = notices.clone();
    let handler = move |thread: Thread| {
        let listener = listener.clone();
        async move {
            thread.on_destroyed(listener.at_attempt(1)).await?;
            thread.state().set("k", 1)?;
            thread.flush().await?;
            thread.destroy().await?;
            Ok::<_, ApiError>(HttpResponse::Ok().finish())
        }
    };

    let response = bench.call(handler).await;

    assert_eq!(response.status(), 200);
    let received = notices.wait(1).await;
    assert_eq!(received[0].archive.as_ref().unwrap().state, r#"{"k":1}"#);
}

async fn callbacks_of_a_missing_thread_do_not_count_towards_the_limit(room: Room) {
    let (bench, _events) = bench(room);
    let notices = Notices::default();
    let id = ThreadId::random();

    // more registrations than the limit of 100 per thread
    for _ in 0..150 {
        let response = bench.call_as(&id, registering(&notices)).await;
        assert_eq!(response.status(), 200);
    }
    let thread = Subject {
        id,
        ..bench.room.subject()
    };
    thread.merge(&[set("k", "1")]).await;
    for number in 0..101 {
        let response = bench.call_as(&id, registering(&notices)).await;
        let is_refused = response.status() == 500;
        assert_eq!(is_refused, number == 100, "{number}");
    }
    thread.destroy().await;

    assert_eq!(notices.wait(100).await.len(), 100);
}

async fn a_failed_callback_is_retried_and_fails_no_request(room: Room) {
    let thread = started(&room).await;
    let (bench, _events) = bench(room);
    let notices = [Notices::default(), Notices::default()];
    let listeners = notices.clone();
    let handler = move |thread: Thread, session: Session| {
        let [third, never] = listeners.clone();
        async move {
            thread.on_destroyed(third.at_attempt(3)).await?;
            thread.on_destroyed(never.at_attempt(6)).await?;
            let panicking = |_| async { panic!("a panic that the test wants") };
            thread.on_destroyed::<_, _, io::Error>(panicking).await?;
            session.on_completed(|_| panic!("a panic that the test wants"));
            let calls = AtomicUsize::new(0);
            session.try_on_completed(move |_| {
                let call = calls.fetch_add(1, Ordering::Relaxed);
                async move { (call > 0).then_some(()).ok_or("not yet") }
            });
            Ok::<_, ApiError>(HttpResponse::Ok().finish())
        }
    };

    let response = bench.call_as(&thread.id, handler).await;
    assert_eq!(response.status(), 200);
    thread.destroy().await;

    let expected = CallbackCounts {
        done: 2,
        failed: 2 + 5 + 5 + 1 + 1,
        given_up: 3,
    };
    until(async || bench.threads.callbacks() == expected).await;
    assert_eq!(notices[0].all().len(), 1);
    assert!(notices[1].all().is_empty());
}

async fn callbacks_are_awaited_at_shutdown(room: Room) {
    let thread = started(&room).await;
    let (bench, events) = bench(room);
    let notices = Notices::default();
    let listener = notices.clone();
    let handler = move |thread: Thread| {
        let listener = listener.clone();
        async move {
            thread.on_destroyed(listener.at_attempt(4)).await?;
            Ok::<_, ApiError>(HttpResponse::Ok().finish())
        }
    };
    bench.call_as(&thread.id, handler).await;
    thread.destroy().await;
    until(async || bench.threads.callbacks().failed > 0).await;

    events.shutdown().await;
    assert_eq!(bench.threads.shutdown(Duration::from_secs(30)).await, 0);

    assert_eq!(notices.all().len(), 1);
}

async fn a_callback_cannot_be_registered_without_events(room: Room) {
    let bench = Bench::new(room);

    let response = bench.call(registering(&Notices::default())).await;

    assert_eq!(response.status(), 500);
}

over_every_store!(
    a_callback_runs_when_its_thread_expires_or_is_destroyed,
    a_callback_follows_its_thread_to_a_new_id,
    a_callback_ignores_earlier_and_later_ends,
    a_callback_runs_for_a_thread_that_its_request_creates_and_ends,
    callbacks_of_a_missing_thread_do_not_count_towards_the_limit,
    a_failed_callback_is_retried_and_fails_no_request,
    callbacks_are_awaited_at_shutdown,
    a_callback_cannot_be_registered_without_events,
);
