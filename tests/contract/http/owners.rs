use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::owner_checks::{Setting, Source, by_key, by_owner_header, thread_of, unique};
use crate::support::client::Answer;
use crate::support::server::{Backend, Server};

async fn a_caller_lists_only_its_own_threads(backend: Backend) {
    let server = by_owner_header(backend).start();
    let client = server.client();
    let (ann, bob) = (unique(), unique());
    let mut ids = Vec::new();
    for number in 0..5 {
        let body = json!({"metadata": {"n": number, "even": number % 2 == 0, "s": "1"}});
        let request = client.post("/v1/threads").header("x-user", &ann);
        let made = request.json(&body.to_string()).ok().await.json();
        assert_eq!(made["owner"], ann.as_str());
        ids.insert(0, made["id"].as_str().unwrap().to_owned());
        // wait, because the server sorts threads by id if they were created in the same millisecond
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let of_bob = client.post("/v1/threads").header("x-user", &bob).ok().await;
    let of_bob = of_bob.json()["id"].as_str().unwrap().to_owned();
    thread_of(&client, None).await;

    let own = |query: &str| {
        client
            .get(&format!("/v1/threads?{query}"))
            .header("x-user", &ann)
    };
    let page_of_ann = own("").ok().await;
    assert_eq!(listed(&page_of_ann), ids);
    // read the thread with its signed id, as a second device of the user does
    let signed_id = page_of_ann.json()["threads"][0]["signed_id"].clone();
    client
        .get("/v1/threads/current")
        .header("x-thread-id", signed_id.as_str().unwrap())
        .header("x-user", &ann)
        .ok()
        .await;
    assert_eq!(
        listed(&own(&format!("owner={ann}&order=created")).ok().await),
        ids
    );
    own(&format!("owner={bob}"))
        .refused(403, "not_the_owner")
        .await;
    client
        .get("/v1/threads")
        .refused(401, "owner_required")
        .await;
    client
        .get("/v1/threads")
        .header("authorization", "Bearer of-nobody")
        .refused(401, "invalid_api_key")
        .await;

    let mut pages = Vec::new();
    let mut query = "limit=2".to_owned();
    loop {
        let page = own(&query).ok().await;
        pages.extend(listed(&page));
        match page.json()["next_cursor"].as_str() {
            Some(cursor) => query = format!("limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(pages, ids);

    let odd = [ids[1].clone(), ids[3].clone()];
    assert_eq!(listed(&own("metadata.even=false").ok().await), odd);
    assert_eq!(
        listed(&own("metadata.n=3&metadata.s=1").ok().await),
        [ids[1].clone()]
    );
    assert!(listed(&own("metadata.n=3&metadata.even=true").ok().await).is_empty());
    let first = own("metadata.even=true&limit=1").ok().await;
    assert_eq!(listed(&first), [ids[0].clone()]);
    let cursor = first.json()["next_cursor"].as_str().unwrap().to_owned();
    let second = own(&format!("metadata.even=true&limit=1&cursor={cursor}"));
    assert_eq!(listed(&second.ok().await), [ids[2].clone()]);
    own(&format!("limit=1&cursor={cursor}"))
        .refused(400, "invalid_cursor")
        .await;

    let by_key = |path: String| by_key(&client, Method::GET, &path);
    let listed_by_key = by_key(format!("/v1/threads?owner={bob}")).ok().await;
    assert_eq!(listed(&listed_by_key), [of_bob]);
    let counted = by_key(format!("/v1/owners/{ann}")).ok().await.json();
    assert_eq!(
        counted,
        json!({"owner": ann, "threads": 5, "size_bytes": 10})
    );
    for (query, code) in [
        ("limit=0", "invalid_parameter"),
        ("limit=101", "invalid_parameter"),
        ("order=updated", "invalid_parameter"),
        ("owner=", "invalid_parameter"),
        ("owner=a%0Ab", "invalid_parameter"),
        ("metadata.a=1&metadata.a=2", "invalid_parameter"),
        ("cursor=abc", "invalid_cursor"),
    ] {
        let refused = by_key(format!("/v1/threads?{query}"));
        refused.refused(400, code).await;
    }
}

fn listed(answer: &Answer) -> Vec<String> {
    let page = answer.json();
    let threads = page["threads"].as_array().unwrap().iter();
    threads
        .map(|thread| thread["id"].as_str().unwrap().to_owned())
        .collect()
}

async fn a_back_end_lists_all_threads_once(backend: Backend) {
    let server = Server::builder(backend).start();
    let client = server.client();
    let mut made = BTreeSet::new();
    for number in 0..30 {
        let owner = (number % 3 == 0).then_some("ann");
        let thread = thread_of(&client, owner).await;
        made.insert(thread["id"].as_str().unwrap().to_owned());
    }
    client
        .get("/v1/threads")
        .refused(401, "api_key_required")
        .await;
    let mut ids = Vec::new();
    let mut query = "limit=7".to_owned();
    loop {
        let page = by_key(&client, Method::GET, &format!("/v1/threads?{query}"))
            .ok()
            .await;
        ids.extend(listed(&page));
        match page.json()["next_cursor"].as_str() {
            Some(cursor) => query = format!("limit=7&cursor={cursor}"),
            None => break,
        }
    }
    ids.retain(|id| made.contains(id));
    assert!(ids.is_sorted());
    assert_eq!(ids.into_iter().collect::<BTreeSet<_>>(), made);
}

async fn only_back_ends_set_owners(backend: Backend) {
    let server = by_owner_header(backend).start();
    let client = server.client();
    let ann = unique();
    let made = client.post("/v1/threads").header("x-user", &ann);
    made.json(r#"{"owner":"bob"}"#)
        .refused(401, "api_key_required")
        .await;
    let own = client.thread();
    own.put("state/k", "1").ok().await;
    let patch = own.patch("", r#"{"owner":"bob"}"#);
    patch.refused(401, "api_key_required").await;
    own.put("state/k", "1").ok().await;
    for owner in ["", "a\nb", &"x".repeat(257)] {
        let body = json!({"owner": owner}).to_string();
        let create = by_key(&client, Method::POST, "/v1/threads");
        create.json(&body).refused(400, "invalid_parameter").await;
    }
}

async fn an_untrusted_header_names_no_owner(backend: Backend) {
    let server = Setting {
        identity: Source::SignedId,
        owner: Source::Header,
        required: false,
    };
    let server = server
        .builder(backend)
        .set("THREADKEEP_TRUSTED_PROXIES", "192.0.2.1")
        .start();
    let client = server.client();
    let thread = thread_of(&client, Some("ann")).await;
    let signed = thread["signed_id"].as_str().unwrap();
    let state = client
        .get("/v1/threads/current/state")
        .header("x-thread-id", signed);
    state
        .header("x-user", "ann")
        .refused(401, "owner_required")
        .await;
}

async fn a_stream_ends_when_the_thread_gets_another_owner(backend: Backend) {
    let server = by_owner_header(backend).start();
    let client = server.client();
    let (ann, bob) = (unique(), unique());
    let made = client.post("/v1/threads").header("x-user", &ann).ok().await;
    let signed = made.header("x-thread-id").unwrap().to_owned();
    let id = signed.split(';').next().unwrap().to_owned();
    let events = client
        .get("/v1/threads/current/events")
        .header("x-thread-id", &signed);
    let events = events
        .header("x-user", &ann)
        .header("accept", "text/event-stream");
    let stream = events.begin().await;
    assert_eq!(stream.status(), 200);
    let path = format!("/v1/threads/{id}");
    let patch = by_key(&client, Method::PATCH, &path);
    patch.json(&json!({"owner": bob}).to_string()).ok().await;
    let put = by_key(&client, Method::PUT, &format!("{path}/state/later"));
    put.json("1").ok().await;
    // the text is complete only when the server ends the stream
    let text = stream.text().await.unwrap();
    assert!(!text.contains("thread.updated"), "{text}");
}

async fn an_owner_may_have_a_limited_number_of_threads(backend: Backend) {
    let setting = Setting {
        identity: Source::SignedId,
        owner: Source::Header,
        required: false,
    };
    let server = setting.builder(backend);
    let server = server.set("THREADKEEP_MAX_THREADS_PER_OWNER", 2).start();
    let client = server.client();
    let ann = unique();
    let made = client.post("/v1/threads").header("x-user", &ann).ok().await;
    let own = client.thread();
    own.put("state/k", "1").ok().await;
    // the first write by an owner binds the thread to that owner
    let bind = own.put("state/k", "2").header("x-user", &ann);
    bind.ok().await;

    let third = client.post("/v1/threads").header("x-user", &ann);
    let refused = third.refused(409, "too_many_threads").await;
    assert_eq!(refused["limit_threads"], 2);
    let unbound = client.thread();
    unbound.put("state/k", "1").ok().await;
    let bind = unbound.put("state/k", "2").header("x-user", &ann);
    bind.refused(409, "too_many_threads").await;
    for operation in [
        json!({"op": "set", "key": "k", "value": 2}),
        json!({"op": "append", "id": "one", "value": 2}),
    ] {
        let body = json!({"operations": [operation]}).to_string();
        let bind = unbound.patch("state", &body).header("x-user", &ann);
        bind.refused(409, "too_many_threads").await;
    }
    let append = r#"{"items":[{"id":"one","value":2}]}"#;
    let bind = unbound.post("history", append).header("x-user", &ann);
    bind.refused(409, "too_many_threads").await;
    let id = &unbound.id;
    let give = by_key(&client, Method::PATCH, &format!("/v1/threads/{id}"));
    let give = give.json(&json!({"owner": ann}).to_string());
    give.refused(409, "too_many_threads").await;
    let turn = unbound.post("turn", "{}").header("x-user", &ann);
    turn.refused(409, "too_many_threads").await;
    assert_eq!(unbound.get("state/k").ok().await.text(), "1");

    let id = made.json()["id"].as_str().unwrap().to_owned();
    let end = by_key(&client, Method::DELETE, &format!("/v1/threads/{id}"));
    assert_eq!(end.send().await.status, 204);
    let bind = unbound.put("state/k", "2").header("x-user", &ann);
    bind.ok().await;

    let path = format!("/v1/archives/{id}/restore");
    let restore = || by_key(&client, Method::POST, &path);
    restore().refused(409, "too_many_threads").await;
    assert_eq!(
        own.delete("").header("x-user", &ann).send().await.status,
        204
    );
    assert_eq!(restore().ok().await.json()["owner"], *ann);
}

async fn an_erased_owner_has_no_threads_and_its_ids_refuse_writes(backend: Backend) {
    let server = by_owner_header(backend).start();
    let client = server.client();
    let (ann, bob) = (unique(), unique());
    let thread = thread_of(&client, Some(&ann)).await;
    let archived = thread_of(&client, Some(&ann)).await;
    let other = thread_of(&client, Some(&bob)).await;
    let path = |thread: &Value| format!("/v1/threads/{}", thread["id"].as_str().unwrap());
    by_key(&client, Method::DELETE, &path(&archived)).ok().await;
    let signed = thread["signed_id"].as_str().unwrap();
    let write = |key: &str| {
        let path = format!("/v1/threads/current/state/{key}");
        let write = client.request(Method::PUT, &path).header("x-user", &ann);
        write.header("x-thread-id", signed).json("1")
    };
    write("k").ok().await;
    let erase = || by_key(&client, Method::DELETE, &format!("/v1/owners/{ann}"));

    let erased = erase().ok().await;

    assert_eq!(erased.status, 200);
    let expected = json!({"threads": 1, "archives": 1, "complete": true});
    assert_eq!(erased.json(), expected);
    write("k").refused(410, "thread_destroyed").await;
    let read = by_key(&client, Method::GET, &path(&thread)).ok().await;
    assert_eq!(read.json()["exists"], false);
    let archive = format!("/v1/archives/{}", archived["id"].as_str().unwrap());
    let archive = by_key(&client, Method::GET, &archive);
    archive.refused(404, "not_found").await;
    let owned = by_key(&client, Method::GET, &format!("/v1/owners/{ann}"));
    let none = json!({"owner": ann, "threads": 0, "size_bytes": 0});
    assert_eq!(owned.ok().await.json(), none);
    let read = by_key(&client, Method::GET, &path(&other)).ok().await;
    assert_eq!(read.json()["owner"], bob);
    let nothing = json!({"threads": 0, "archives": 0, "complete": true});
    assert_eq!(erase().ok().await.json(), nothing);
}

async fn the_stream_of_an_erased_thread_has_its_end_and_no_reset(backend: Backend) {
    let server = by_owner_header(backend).start();
    let client = server.client();
    let ann = unique();
    let thread = thread_of(&client, Some(&ann)).await;
    let path = format!("/v1/threads/{}", thread["id"].as_str().unwrap());
    let mut events = by_key(&client, Method::GET, &format!("{path}/events"))
        .listen()
        .await;
    let put = by_key(&client, Method::PUT, &format!("{path}/state/later"));
    put.json("1").ok().await;
    assert_eq!(events.next().await.event, "thread.updated");

    let erase = by_key(&client, Method::DELETE, &format!("/v1/owners/{ann}"));
    erase.ok().await;

    let end = events.next().await;
    assert_eq!(end.event, "thread.destroyed");
    let data = end.about();
    assert_eq!(data["reason"], "erased");
    assert_eq!(data["metadata"], Value::Null);
    for name in ["state", "state_lost", "history_url"] {
        assert_eq!(data.get(name), None, "{data}");
    }
}

async fn only_back_ends_erase_owners(backend: Backend) {
    let server = by_owner_header(backend).start();
    let client = server.client();
    let ann = unique();
    let path = format!("/v1/owners/{ann}");
    let own = client.request(Method::DELETE, &path).header("x-user", &ann);
    own.refused(401, "api_key_required").await;
    let long = format!("/v1/owners/{}", "x".repeat(257));
    for path in ["/v1/owners/a%0Ab", &long] {
        let erase = by_key(&client, Method::DELETE, path);
        erase.refused(400, "invalid_parameter").await;
    }
    let unknown = by_key(&client, Method::DELETE, &format!("{path}?now=1"));
    unknown.refused(400, "invalid_parameter").await;
    let post = by_key(&client, Method::POST, &path).json("{}");
    post.refused(405, "method_not_allowed").await;
}

super::with_own_servers! {
    an_owner_may_have_a_limited_number_of_threads,
    a_caller_lists_only_its_own_threads,
    a_back_end_lists_all_threads_once,
    only_back_ends_set_owners,
    an_untrusted_header_names_no_owner,
    a_stream_ends_when_the_thread_gets_another_owner,
    an_erased_owner_has_no_threads_and_its_ids_refuse_writes,
    the_stream_of_an_erased_thread_has_its_end_and_no_reset,
    only_back_ends_erase_owners,
}
