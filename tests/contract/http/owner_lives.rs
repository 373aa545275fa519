use reqwest::Method;

use super::owner_doors::{unique, without_tombstones};
use crate::support::client::{OwnThread, Request};
use crate::support::listening::Listening;
use crate::support::server::Backend;

struct Of<'a>(&'a OwnThread, String);

impl Of<'_> {
    fn ask(&self, method: Method, path: &str) -> Request {
        let Self(thread, user) = self;
        thread.request(method, path).header("x-user", user)
    }

    async fn put(&self, key: &str) {
        let put = self.ask(Method::PUT, &format!("state/{key}"));
        put.json("1").ok().await;
    }

    async fn listen(&self, after: Option<&str>) -> Listening {
        let request = self.ask(Method::GET, "events?values=true");
        match after {
            Some(cursor) => request.header("last-event-id", cursor),
            None => request,
        }
        .listen()
        .await
    }
}

/// Creates a thread that belongs to Ann. Bob subscribes to the thread's id before the thread exists. Returns Ann's
/// access, her event stream, Bob's access, and the cursor of Bob's stream.
async fn watched<'a>(thread: &'a OwnThread) -> (Of<'a>, Listening, Of<'a>, String) {
    let [ann, bob] = [(); 2].map(|()| Of(thread, unique()));
    let before = bob.listen(None).await.cursor;
    ann.put("first-of-ann").await;
    let mut events = ann.listen(None).await;
    ann.put("second-of-ann").await;
    assert_eq!(events.next().await.event, "thread.updated");
    (ann, events, bob, before)
}

async fn until_key(events: &mut Listening, key: &str) -> String {
    let mut all = String::new();
    while !all.contains(key) {
        let sent = events.next().await;
        all += &format!("{} {}\n", sent.event, sent.text);
    }
    all
}

async fn a_stream_has_no_events_of_a_life_of_another_owner(backend: Backend) {
    let server = without_tombstones(backend);
    let thread = server.client().thread();
    let (ann, mut events, bob, before) = watched(&thread).await;
    ann.ask(Method::DELETE, "").ok().await;
    assert_eq!(events.next().await.event, "thread.destroyed");

    // Bob writes first, because a thread without an owner accepts no subscriptions
    bob.put("first-of-bob").await;
    let mut of_bob = bob.listen(Some(&before)).await;
    bob.put("second-of-bob").await;

    let all = until_key(&mut of_bob, "second-of-bob").await;
    assert!(!all.contains("of-ann"), "{all}");
    assert!(!all.contains("thread.destroyed"), "{all}");
    assert!(all.starts_with("reset "), "{all}");
    // Ann may no longer subscribe, so she does not see Bob's writes
    ann.ask(Method::GET, "events")
        .refused(403, "not_the_owner")
        .await;
}

async fn an_owner_gets_the_end_of_a_life_that_is_over(backend: Backend) {
    let server = without_tombstones(backend);
    let thread = server.client().thread();
    let (ann, events, ..) = watched(&thread).await;
    let cursor = events.cursor.clone();
    drop(events);
    ann.put("third-of-ann").await;
    ann.ask(Method::DELETE, "").ok().await;

    let mut later = ann.listen(Some(&cursor)).await;

    let third = later.next().await;
    assert_eq!(third.event, "thread.updated");
    assert!(third.text.contains("third-of-ann"), "{third:?}");
    let end = later.next().await;
    assert_eq!(end.event, "thread.destroyed");
    assert_eq!(end.about()["state"]["third-of-ann"], 1);
}

async fn a_moved_thread_is_not_found_from_its_old_id_by_another_owner(backend: Backend) {
    let server = without_tombstones(backend);
    let thread = server.client().thread();
    let (ann, _, bob, before) = watched(&thread).await;
    let moved = ann.ask(Method::POST, "rotate").ok().await.json();
    let new_id = moved["id"].as_str().unwrap();
    let mut of_ann = ann.listen(Some(&before)).await;
    let all_of_ann = until_key(&mut of_ann, new_id).await;
    assert!(all_of_ann.contains("thread.rotated"), "{all_of_ann}");
    bob.put("first-of-bob").await;

    let mut all = String::new();
    let mut cursor = before;
    // each stream ends at the rotation, so Bob reconnects with the last cursor
    while !all.contains("first-of-bob") {
        let mut events = bob.listen(Some(&cursor)).await;
        while let Some(sent) = events.try_next().await {
            all += &sent.text;
            if all.contains("first-of-bob") {
                break;
            }
        }
        assert_ne!(events.cursor, cursor, "the stream goes on");
        cursor = events.cursor.clone();
    }

    assert!(!all.contains("of-ann"), "{all}");
    assert!(!all.contains(new_id), "{all}");
}

super::with_own_servers! {
    a_stream_has_no_events_of_a_life_of_another_owner,
    an_owner_gets_the_end_of_a_life_that_is_over,
    a_moved_thread_is_not_found_from_its_old_id_by_another_owner,
}
