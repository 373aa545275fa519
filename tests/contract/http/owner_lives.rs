use reqwest::Method;

use super::owner_checks::{unique, without_tombstones};
use crate::support::client::{OwnThread, Request};
use crate::support::listening::Listening;
use crate::support::server::Backend;

struct Access<'a>(&'a OwnThread, String);

impl Access<'_> {
    fn request(&self, method: Method, path: &str) -> Request {
        let Self(thread, user) = self;
        thread.request(method, path).header("x-user", user)
    }

    async fn put(&self, key: &str) {
        let put = self.request(Method::PUT, &format!("state/{key}"));
        put.json("1").ok().await;
    }

    async fn listen(&self, after: Option<&str>) -> Listening {
        let request = self.request(Method::GET, "events?values=true");
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
async fn watched_thread<'a>(thread: &'a OwnThread) -> (Access<'a>, Listening, Access<'a>, String) {
    let [ann, bob] = [(); 2].map(|()| Access(thread, unique()));
    let cursor = bob.listen(None).await.cursor;
    ann.put("first-of-ann").await;
    let mut events = ann.listen(None).await;
    ann.put("second-of-ann").await;
    assert_eq!(events.next().await.event, "thread.updated");
    (ann, events, bob, cursor)
}

async fn until_key(events: &mut Listening, key: &str) -> String {
    let mut text = String::new();
    while !text.contains(key) {
        let sent = events.next().await;
        text += &format!("{} {}\n", sent.event, sent.text);
    }
    text
}

async fn a_stream_hides_the_earlier_thread_of_another_owner(backend: Backend) {
    let server = without_tombstones(backend);
    let thread = server.client().thread();
    let (ann, mut events, bob, cursor) = watched_thread(&thread).await;
    ann.request(Method::DELETE, "").ok().await;
    assert_eq!(events.next().await.event, "thread.destroyed");

    // Bob writes first, because until there is a new thread, only Ann may subscribe to the ended thread's id
    bob.put("first-of-bob").await;
    let mut bob_events = bob.listen(Some(&cursor)).await;
    bob.put("second-of-bob").await;

    let text = until_key(&mut bob_events, "second-of-bob").await;
    assert!(!text.contains("of-ann"), "{text}");
    assert!(!text.contains("thread.destroyed"), "{text}");
    assert!(text.starts_with("reset "), "{text}");
    // Ann may not subscribe to Bob's thread, so she does not see his writes
    ann.request(Method::GET, "events")
        .refused(403, "not_the_owner")
        .await;
}

async fn an_owner_receives_the_end_of_its_ended_thread(backend: Backend) {
    let server = without_tombstones(backend);
    let thread = server.client().thread();
    let (ann, events, ..) = watched_thread(&thread).await;
    let cursor = events.cursor.clone();
    drop(events);
    ann.put("third-of-ann").await;
    ann.request(Method::DELETE, "").ok().await;

    let mut later = ann.listen(Some(&cursor)).await;

    let third = later.next().await;
    assert_eq!(third.event, "thread.updated");
    assert!(third.text.contains("third-of-ann"), "{third:?}");
    let end = later.next().await;
    assert_eq!(end.event, "thread.destroyed");
    assert_eq!(end.about()["state"]["third-of-ann"], 1);
}

async fn another_owner_of_an_old_id_cannot_find_the_rotated_thread(backend: Backend) {
    let server = without_tombstones(backend);
    let thread = server.client().thread();
    let (ann, _, bob, before) = watched_thread(&thread).await;
    let rotated = ann.request(Method::POST, "rotate").ok().await.json();
    let new_id = rotated["id"].as_str().unwrap();
    let mut ann_events = ann.listen(Some(&before)).await;
    let ann_text = until_key(&mut ann_events, new_id).await;
    assert!(ann_text.contains("thread.rotated"), "{ann_text}");
    bob.put("first-of-bob").await;

    let mut bob_text = String::new();
    let mut cursor = before;
    // each stream ends at the rotation, so Bob reconnects with the last cursor
    while !bob_text.contains("first-of-bob") {
        let mut events = bob.listen(Some(&cursor)).await;
        while let Some(sent) = events.try_next().await {
            bob_text += &sent.text;
            if bob_text.contains("first-of-bob") {
                break;
            }
        }
        assert_ne!(events.cursor, cursor, "the stream should advance");
        cursor = events.cursor.clone();
    }

    assert!(!bob_text.contains("of-ann"), "{bob_text}");
    assert!(!bob_text.contains(new_id), "{bob_text}");
}

super::with_own_servers! {
    a_stream_hides_the_earlier_thread_of_another_owner,
    an_owner_receives_the_end_of_its_ended_thread,
    another_owner_of_an_old_id_cannot_find_the_rotated_thread,
}
