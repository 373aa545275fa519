use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use actix_web::App;
use actix_web::body::MessageBody;
use actix_web::dev::ServiceResponse;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, call_service, init_service};
use threadkeep_domain::ThreadId;
use threadkeep_events::{EventSettings, Events};
use threadkeep_http::{Api, envelope};
use threadkeep_identity::THREAD_ID;
use threadkeep_webhooks::WebhookSettings;

use super::{over_every_store, replica_with, soon};
use crate::conformance::room::{Room, Subject, set};

fn api(room: &Room, events: &Events) -> Api {
    room.api(events.clone(), WebhookSettings::default())
}

fn quick() -> EventSettings {
    EventSettings {
        heartbeat: Duration::from_millis(50),
        ..EventSettings::default()
    }
}

struct Body(Pin<Box<dyn MessageBody<Error = Box<dyn std::error::Error>>>>);

impl Body {
    async fn next(&mut self) -> Option<String> {
        let chunk = soon(poll_fn(|context| self.0.as_mut().poll_next(context))).await?;
        let chunk = chunk.unwrap();
        Some(String::from_utf8(chunk.to_vec()).unwrap())
    }
}

async fn listen(api: &Api, id: &ThreadId) -> Body {
    let request = TestRequest::with_uri("/v1/threads/current/events")
        .insert_header((THREAD_ID, api.identity.signed_id(id)))
        .insert_header(("accept", "text/event-stream"));
    send(api, request).await
}

async fn send(api: &Api, request: TestRequest) -> Body {
    let app = App::new()
        .wrap(from_fn(envelope))
        .configure(|config| api.configure(config));
    let app = init_service(app).await;
    let response: ServiceResponse<_> = call_service(&app, request.to_request()).await;
    assert_eq!(response.status(), 200);
    Body(Box::pin(response.into_body().boxed()) as _)
}

async fn an_idle_stream_sends_comments_with_its_cursor(room: Room) {
    let events = replica_with(&room, quick());
    let api = api(&room, &events);
    let thread = room.subject();
    let mut body = listen(&api, &thread.id).await;
    let global =
        TestRequest::with_uri("/v1/events").insert_header(("authorization", "Bearer secret"));
    let mut global = send(&api, global).await;

    for body in [&mut body, &mut global] {
        let first = body.next().await.unwrap();
        assert!(first.starts_with("retry: 2000\nid: "), "{first}");
        for _ in 0..2 {
            let comment = body.next().await.unwrap();
            assert!(comment.starts_with(":\nid: "), "{comment}");
            assert!(comment.ends_with("\n\n"), "{comment}");
        }
    }
}

async fn a_stream_resumes_from_the_cursor_of_a_comment(room: Room) {
    let events = replica_with(&room, quick());
    let api = api(&room, &events);
    let (thread, neighbour) = (room.subject(), neighbour_finder(&room));
    let mut body = listen(&api, &thread.id).await;
    let first = body.next().await.unwrap();
    neighbour(&thread).merge(&[set("k", "1")]).await;

    // writes to other threads of the same log advance the cursor
    let next_cursor = async {
        loop {
            let comment = body.next().await.unwrap();
            if id_of(&comment) != id_of(&first) {
                return id_of(&comment);
            }
        }
    };
    let cursor = soon(next_cursor).await;
    drop(body);
    thread.merge(&[set("k", "1")]).await;

    let request = TestRequest::with_uri("/v1/threads/current/events")
        .insert_header((THREAD_ID, api.identity.signed_id(&thread.id)))
        .insert_header(("last-event-id", cursor));
    let mut body = send(&api, request).await;
    body.next().await.unwrap();
    let event = loop {
        let next = body.next().await.unwrap();
        if !next.starts_with(':') {
            break next;
        }
    };
    assert!(event.starts_with("event: thread.created\n"), "{event}");
}

/// Returns a function that creates a thread whose events go to the same log as those of a given thread.
fn neighbour_finder(room: &Room) -> impl Fn(&Subject) -> Subject {
    let backend = Arc::clone(&room.backend);
    let store = Arc::clone(&room.store);
    move |thread| {
        let bucket = backend.bucket_of(&thread.id);
        std::iter::repeat_with(|| Subject::of(Arc::clone(&store)))
            .find(|other| backend.bucket_of(&other.id) == bucket)
            .unwrap()
    }
}

fn id_of(frame: &str) -> String {
    let line = frame.lines().find_map(|line| line.strip_prefix("id: "));
    line.unwrap().to_owned()
}

async fn a_reader_that_stops_reading_is_cut_off(room: Room) {
    let events = replica_with(&room, quick());
    let api = api(&room, &events);
    let thread = room.subject();
    let mut body = listen(&api, &thread.id).await;
    body.next().await.unwrap();

    for number in 0..300 {
        thread.merge(&[set("k", &number.to_string())]).await;
    }
    let is_cut_off = || async { events.counters().streams_cut_off.get() == 1 };
    crate::support::until(is_cut_off).await;

    let mut frames = 0;
    while body.next().await.is_some() {
        frames += 1;
    }
    assert_eq!(frames, 128, "the capacity of the buffer");
    drop(body);
    assert_eq!(events.counters().thread_streams.get(), 0);
}

async fn streams_end_when_the_replica_stops(room: Room) {
    let events = replica_with(&room, quick());
    let api = api(&room, &events);
    let thread = room.subject();
    let mut body = listen(&api, &thread.id).await;
    body.next().await.unwrap();

    events.end_streams();

    while body.next().await.is_some() {}
}

over_every_store!(
    an_idle_stream_sends_comments_with_its_cursor,
    a_stream_resumes_from_the_cursor_of_a_comment,
    a_reader_that_stops_reading_is_cut_off,
    streams_end_when_the_replica_stops,
);
