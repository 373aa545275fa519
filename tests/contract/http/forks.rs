use reqwest::Method;
use serde_json::{Value, json};

use crate::support::client::{Answer, Client, OwnThread, new_id};
use crate::support::server::{API_SECRET, Backend, Server};

async fn filled(client: &Client) -> OwnThread {
    let thread = client.thread();
    thread
        .put("state", r#"{"list":[1.0,{}],"k":"v"}"#)
        .ok()
        .await;
    thread
        .patch("", r#"{"metadata":{"title":"a"},"ttl_seconds":600}"#)
        .ok()
        .await;
    thread
        .post("history", r#"{"id":"1","value":[]}"#)
        .ok()
        .await;
    thread
}

fn copy_of(client: &Client, answer: &Answer) -> OwnThread {
    let copy = client.thread_of(answer.json()["id"].as_str().unwrap());
    assert_eq!(answer.json()["signed_id"], copy.signed.as_str());
    assert_eq!(answer.header("x-thread-id"), Some(&*copy.signed));
    let location = format!("/v1/threads/{}", copy.id);
    assert_eq!(answer.header("location"), Some(&*location));
    assert_eq!(answer.header("set-cookie"), None);
    copy
}

async fn a_fork_returns_a_new_thread(server: &Server) {
    let client = server.client();
    let thread = filled(&client).await;

    let answer = thread.request(Method::POST, "fork").send().await;

    assert_eq!(answer.status, 201, "{}", answer.text());
    let copy = copy_of(&client, &answer);
    assert_ne!(copy.id, thread.id);
    let object = answer.json();
    assert_eq!(object["version"], 1);
    assert_eq!(object["ttl_seconds"], 600);
    let metadata = json!({"title": "a", "forked_from": {"thread_id": thread.id, "version": 2}});
    assert_eq!(object["metadata"], metadata);
    assert_eq!(copy.state().await, r#"{"k":"v","list":[1.0,{}]}"#);
    let history = copy.get("history").ok().await.json();
    assert_eq!(history["items"][0]["id"], "1");
    assert_eq!(copy.get("").ok().await.etag(), answer.etag());
    assert_eq!(thread.object().await["version"], 2);
}

async fn a_fork_accepts_parts_metadata_and_a_ttl(server: &Server) {
    let client = server.client();
    let thread = filled(&client).await;
    let body = r#"{"metadata":{"mine":1},"include":["history"]}"#;

    let answer = thread.post("fork?ttl_seconds=70", body).ok().await;

    let copy = copy_of(&client, &answer);
    assert_eq!(copy.state().await, "{}");
    let history = copy.get("history").ok().await.json();
    assert_eq!(history["items"].as_array().unwrap().len(), 1);
    let object = copy.object().await;
    assert_eq!(object["metadata"]["mine"], 1);
    assert_eq!(object["metadata"].get("title"), None);
    assert_eq!(object["ttl_seconds"], 70);
}

async fn a_fork_accepts_the_conditions_of_a_write(server: &Server) {
    let client = server.client();
    let thread = filled(&client).await;
    let tag = thread.get("").ok().await.etag().to_owned();

    let stale = thread.post("fork", "{}").header("if-match", "\"1\"");
    let problem = stale.refused(412, "version_mismatch").await;
    assert_eq!(problem["current_version"], 2);
    let lost = thread
        .post("fork", "{}")
        .header("x-turn-token", "turn_00000000000000000000000000000000");
    lost.refused(409, "turn_lost").await;
    thread.post("fork", "{}").header("if-match", tag).ok().await;

    let key = "0123456789abcdef0123456789abcdef";
    let once = |body: &str| thread.post("fork", body).header("idempotency-key", key);
    let first = once("{}").ok().await;
    thread.put("state/k", "2").ok().await;
    let again = once("{}").ok().await;
    assert_eq!(again.status, 201);
    assert_eq!(again.text(), first.text());
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    once(r#"{"include":[]}"#)
        .refused(422, "idempotency_key_reused")
        .await;
}

async fn only_a_back_end_chooses_id_and_owner(server: &Server) {
    let client = server.client();
    let thread = filled(&client).await;
    let id = new_id();
    let body = json!({"id": id, "owner": "user-42"}).to_string();

    for body in [
        body.clone(),
        json!({"id": id}).to_string(),
        json!({"owner": "user-42"}).to_string(),
    ] {
        thread
            .post("fork", &body)
            .refused(401, "api_key_required")
            .await;
    }
    let fork = || thread.by_api_key(Method::POST, "fork").json(&body);
    let answer = fork().ok().await;
    assert_eq!(answer.json()["id"], id.as_str());
    assert_eq!(answer.json()["owner"], "user-42");
    copy_of(&client, &answer);
    fork().refused(409, "thread_exists").await;
}

async fn an_impossible_fork_is_refused(server: &Server) {
    let client = server.client();
    let absent = client.thread();
    absent.post("fork", "{}").refused(404, "not_found").await;
    assert_eq!(absent.object().await["exists"], false);
    let thread = filled(&client).await;
    let large = json!({"metadata": {"a": "x".repeat(16_380)}}).to_string();
    thread
        .post("fork", &large)
        .refused(413, "metadata_too_large")
        .await;
    for body in [
        r#"{"x":1}"#,
        r#"{"include":["turn"]}"#,
        r#"{"include":"state"}"#,
        r#"{"metadata":[]}"#,
        r#"{"metadata":null}"#,
        "[]",
    ] {
        thread
            .post("fork", body)
            .refused(400, "invalid_parameter")
            .await;
    }
    thread.post("fork", "{").refused(400, "invalid_json").await;
    thread
        .post("fork?x=1", "{}")
        .refused(400, "invalid_parameter")
        .await;
    thread.get("fork").refused(405, "method_not_allowed").await;
}

async fn a_fork_is_an_event_of_the_new_thread(server: &Server) {
    let client = server.client();
    let mut events = client
        .get("/v1/events?type=thread.forked")
        .bearer(API_SECRET)
        .listen()
        .await;
    let thread = filled(&client).await;

    let answer = thread.post("fork", "{}").ok().await;

    let copy = copy_of(&client, &answer);
    let event = loop {
        let event = events.next().await;
        if event.about()["thread_id"] == copy.id.as_str() {
            break event;
        }
    };
    assert_eq!(event.words(), "thread.forked 1");
    let origin: &Value = &event.about()["forked_from"];
    assert_eq!(*origin, json!({"thread_id": thread.id, "version": 2}));
    assert_eq!(event.about()["sequence"], 2);
}

async fn a_fork_counts_as_a_new_thread(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_RATE_NEW_THREADS", "2/1d")
        .start();
    let client = server.client();
    let thread = client.thread();
    thread.put("state/k", "1").ok().await;
    thread.post("fork", "{}").ok().await;

    let problem = thread.post("fork", "{}").refused(429, "rate_limited").await;

    assert_eq!(problem["limit"], "new_threads");
    thread.by_api_key(Method::POST, "fork").ok().await;
}

async fn the_copy_belongs_to_its_caller(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_OWNER", "header")
        .set("THREADKEEP_IDENTITY_HEADER", "x-user")
        .set("THREADKEEP_TRUSTED_PROXIES", "127.0.0.1")
        .start();
    let client = server.client();
    let thread = client.thread();
    thread
        .put("state/k", "1")
        .header("x-user", "ada")
        .ok()
        .await;

    let fork = |user: &str| thread.post("fork", "{}").header("x-user", user);
    fork("bob").refused(403, "not_the_owner").await;
    thread
        .post("fork", "{}")
        .refused(401, "owner_required")
        .await;
    assert_eq!(fork("ada").ok().await.json()["owner"], "ada");
    let by_key = thread.by_api_key(Method::POST, "fork").ok().await;
    assert_eq!(by_key.json()["owner"], "ada");
}

async fn a_fork_begins_at_a_checkpoint(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    thread.put("state/k", "1.0").ok().await;
    thread.patch("", r#"{"metadata":{"n":1}}"#).ok().await;
    thread.post("checkpoints", "{}").ok().await;
    thread.put("state", r#"{"later":1}"#).ok().await;
    thread.patch("", r#"{"metadata":{"n":2}}"#).ok().await;
    thread
        .post("history", r#"{"items":[{"id":"1","value":1}]}"#)
        .ok()
        .await;

    let answer = thread.post("fork", r#"{"from_checkpoint":1}"#).ok().await;

    let copy = client.thread_of(answer.json()["id"].as_str().unwrap());
    assert_eq!(copy.state().await, r#"{"k":1.0}"#);
    assert_eq!(
        answer.json()["metadata"],
        json!({"n": 1, "forked_from": {"thread_id": thread.id, "version": 2}})
    );
    let history = copy.get("history").ok().await.json();
    assert_eq!(history["items"][0]["id"], "1");
    let list = copy.get("checkpoints").ok().await.json();
    assert_eq!(list, json!({"checkpoints": []}));
    thread
        .post("fork", r#"{"from_checkpoint":2}"#)
        .refused(404, "not_found")
        .await;
    for number in ["0", "4294967296", "\"1\"", "1.0"] {
        let body = format!(r#"{{"from_checkpoint":{number}}}"#);
        let fork = thread.post("fork", &body);
        fork.refused(400, "invalid_parameter").await;
    }
}

async fn forks_and_imports_count_towards_the_limit_of_an_owner(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_MAX_THREADS_PER_OWNER", 2)
        .start();
    let client = server.client();
    let thread = client.thread();
    thread.put("state/k", "1").ok().await;
    let give = thread.by_api_key(Method::PATCH, "");
    give.json(r#"{"owner":"ann"}"#).ok().await;
    let fork = || thread.by_api_key(Method::POST, "fork");
    let copy = fork().ok().await.json()["id"].as_str().unwrap().to_owned();

    let refused = fork().refused(409, "too_many_threads").await;
    assert_eq!(refused["limit_threads"], 2);
    fork().json(r#"{"owner":"bob"}"#).ok().await;

    let export = thread.by_api_key(Method::GET, "export").ok().await.text();
    let import = |document: &str| {
        let request = client.post("/v1/threads/import?if_exists=replace");
        request.bearer(API_SECRET).json(document)
    };
    // this import replaces the source thread, so the owner's thread count does not change
    import(&export).ok().await;
    let another = export.replace(&thread.id, &new_id());
    import(&another).refused(409, "too_many_threads").await;
    let of_bob = another.replace("\"owner\":\"ann\"", "\"owner\":\"bob\"");
    import(&of_bob).ok().await;
    let taken_over = of_bob.replace("\"owner\":\"bob\"", "\"owner\":\"ann\"");
    import(&taken_over).refused(409, "too_many_threads").await;
    let end = client.thread_of(&copy).by_api_key(Method::DELETE, "");
    end.send().await;
    import(&taken_over).ok().await;
    fork().refused(409, "too_many_threads").await;
}

over_both_stores![
    a_fork_begins_at_a_checkpoint,
    a_fork_returns_a_new_thread,
    a_fork_accepts_parts_metadata_and_a_ttl,
    a_fork_accepts_the_conditions_of_a_write,
    only_a_back_end_chooses_id_and_owner,
    an_impossible_fork_is_refused,
    a_fork_is_an_event_of_the_new_thread,
];

with_own_servers![
    a_fork_counts_as_a_new_thread,
    the_copy_belongs_to_its_caller,
    forks_and_imports_count_towards_the_limit_of_an_owner,
];
