use futures_util::{StreamExt as _, stream};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::client::{Client, OwnThread, Request, new_id};
use crate::support::dates::parse_rfc3339;
use crate::support::server::{API_SECRET, Backend, Server};

async fn filled(client: &Client) -> OwnThread {
    let thread = client.thread();
    let state =
        r#"{"n":9007199254740993,"e":1e400,"o":{"b":[],"a":{},"a":1.0},"list":[1,"\ud800"]}"#;
    thread.put("state", state).ok().await;
    let changes = json!({"metadata": {"title": "a"}, "ttl_seconds": 600, "owner": "user-42"});
    thread
        .by_api_key(Method::PATCH, "")
        .json(&changes.to_string())
        .ok()
        .await;
    thread
        .post(
            "history",
            r#"{"items":[{"id":"1","value":1.0},{"id":"2","value":"b"}]}"#,
        )
        .ok()
        .await;
    let scope = format!("thread:{}", thread.id);
    let scoped = |path: &str, mut body: Value| {
        body["scope"] = json!(scope);
        let request = client.post(&format!("/v1/scopes/{path}"));
        request.bearer(API_SECRET).json(&body.to_string())
    };
    scoped(
        "keys/set",
        json!({"entries": [
            {"key": "a/b", "value": "text\n\u{1F600}"},
            {"key": "c", "value": "", "ttl_seconds": 600},
        ]}),
    )
    .ok()
    .await;
    let tasks = json!([{"content": "one", "status": "in_progress", "active_form": "doing"}]);
    scoped("tasks/set", json!({"tasks": tasks})).ok().await;
    thread
}

async fn with_checkpoints_and_removals(client: &Client) -> OwnThread {
    let thread = filled(client).await;
    for body in [r#"{"name":"before"}"#, "{}", "{}"] {
        thread.post("checkpoints", body).ok().await;
        thread.post("state/list/push", "1.0").ok().await;
    }
    thread.delete("checkpoints/3").ok().await;
    let items = (3..7).map(|number| json!({"id": number.to_string(), "value": number}));
    let items = json!({"items": items.collect::<Vec<_>>()}).to_string();
    thread.post("history", &items).ok().await;
    thread.delete("history/4").ok().await;
    thread.post("history/take", "{}").ok().await;
    thread
}

/// Parses an exported thread after replacing a number and an escape that `serde_json` cannot represent.
fn parsed(document: &str) -> Value {
    let plain = document.replace("1e400", "1e40").replace(r"\ud800", "");
    serde_json::from_str(&plain).unwrap()
}

fn import(client: &Client, query: &str, document: &str) -> Request {
    let request = client.post(&format!("/v1/threads/import{query}"));
    request.bearer(API_SECRET).json(document)
}

async fn export(thread: &OwnThread) -> String {
    thread.by_api_key(Method::GET, "export").ok().await.text()
}

fn without_expiry(document: &str) -> String {
    let (before, rest) = document.split_once(r#","expires_at":""#).unwrap();
    let (_, after) = rest.split_once('"').unwrap();
    format!("{before}{after}")
}

async fn a_document_contains_the_whole_thread(server: &Server) {
    let thread = filled(&server.client()).await;

    let text = export(&thread).await;

    let document = parsed(&text);
    let mut object = thread.by_api_key(Method::GET, "").ok().await.json();
    let signed = object.as_object_mut().unwrap().remove("signed_id");
    assert_eq!(signed, Some(json!(thread.signed)));
    assert_eq!(document["format"], 1);
    assert_eq!(document["thread"]["id"], thread.id.as_str());
    let mut exported = document["thread"].clone();
    exported["expires_at"] = object["expires_at"].clone();
    assert_eq!(exported, object);
    assert_eq!(document["owner"], "user-42");
    assert_eq!(document["metadata"], json!({"title": "a"}));
    let state = thread.state().await;
    assert!(
        text.contains(&format!(r#","state":{state},"scope":"#)),
        "{text}"
    );
    assert_eq!(
        document["scope"]["keys"][0],
        json!({"key": "a/b", "value": "text\n\u{1F600}"})
    );
    assert!(document["scope"]["keys"][1]["expires_at"].is_string());
    assert_eq!(document["scope"]["tasks"][0]["active_form"], "doing");
    let history = &document["history"];
    assert_eq!(
        (&history["first_seq"], &history["next_seq"]),
        (&json!(1), &json!(3))
    );
    assert_eq!(history["items"][1]["id"], "2");
    let head = thread.by_api_key(Method::HEAD, "export").ok().await;
    assert!(head.text().is_empty());
}

async fn a_document_has_checkpoints_and_history_gaps(server: &Server) {
    let thread = with_checkpoints_and_removals(&server.client()).await;

    let text = export(&thread).await;

    let document = parsed(&text);
    let history = &document["history"];
    let seqs = history["items"].as_array().unwrap().iter();
    let seqs: Vec<_> = seqs.map(|item| item["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, [1, 2, 3, 5]);
    assert_eq!(history["next_seq"], 7);
    let checkpoints = document["checkpoints"].as_array().unwrap();
    assert_eq!(document["next_checkpoint"], 4);
    assert_eq!(checkpoints.len(), 2);
    assert_eq!(checkpoints[1]["checkpoint"], 1);
    assert_eq!(checkpoints[1]["name"], "before");
    assert_eq!(checkpoints[1]["metadata"], json!({"title": "a"}));
    let saved = thread.get("checkpoints/1").ok().await.text();
    let (_, state) = saved.split_once(r#","state":"#).unwrap();
    assert!(text.contains(&format!(r#","state":{state}]"#)), "{text}");
}

async fn impossible_checkpoints_are_refused(server: &Server) {
    let client = server.client();
    let thread = with_checkpoints_and_removals(&client).await;
    let good = export(&thread).await.replace(&thread.id, &new_id());
    let (before, _) = good.split_once(r#","checkpoints":"#).unwrap();
    let checkpoint = |number: u64, state: &str| {
        format!(
            r#"{{"checkpoint":{number},"version":1,"created_at":"2026-01-01T00:00:00Z","metadata":{{}},"state":{state}}}"#
        )
    };
    let many: Vec<_> = (0..33).map(|n| checkpoint(40 - n, "{}")).collect();
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(1_000_000));
    let too_large: Vec<_> = (0..5).map(|n| checkpoint(40 - n, &large)).collect();
    let one = checkpoint(1, "{}");
    for (checkpoints, next, status, code) in [
        (many.join(","), None, 400, "invalid_parameter"),
        (too_large.join(","), None, 409, "too_many_checkpoints"),
        (format!("{one},{one}"), None, 400, "invalid_parameter"),
        (
            format!("{one},{}", checkpoint(2, "{}")),
            None,
            400,
            "invalid_parameter",
        ),
        (one.clone(), Some("1"), 400, "invalid_parameter"),
        (one.clone(), Some("4294967296"), 400, "invalid_parameter"),
        (checkpoint(0, "{}"), None, 400, "invalid_parameter"),
        (checkpoint(1, "[]"), None, 400, "invalid_parameter"),
        (
            one.replace(r#""version":1"#, r#""version":1,"name":"""#),
            None,
            400,
            "invalid_parameter",
        ),
    ] {
        let next = next.map_or_else(String::new, |next| format!(r#","next_checkpoint":{next}"#));
        let bad = format!(r#"{before},"checkpoints":[{checkpoints}]{next}}}"#);
        let answer = import(&client, "", &bad).send().await;
        let text = answer.text();
        assert_eq!(
            (answer.status, &answer.json()["code"]),
            (status, &json!(code)),
            "{text}"
        );
    }
    // an exported thread that never had checkpoints may omit `checkpoints` and `next_checkpoint`
    let without = format!("{before}}}");
    import(&client, "", &without).ok().await;
}

async fn an_import_keeps_everything_to_the_byte(server: &Server) {
    let client = server.client();
    let thread = with_checkpoints_and_removals(&client).await;
    let document = export(&thread).await;
    import(&client, "", &document)
        .refused(409, "thread_exists")
        .await;
    thread.delete("").ok().await;
    import(&client, "", &document)
        .refused(410, "thread_destroyed")
        .await;
    let copy = client.thread();
    let moved = document.replace(&thread.id, &copy.id);

    let answer = import(&client, "", &moved).send().await;

    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(answer.json()["signed_id"], copy.signed.as_str());
    assert_eq!(answer.header("x-thread-id"), Some(&*copy.signed));
    assert_eq!(answer.json()["version"], 5);
    assert_eq!(without_expiry(&export(&copy).await), without_expiry(&moved));
    // whitespace is accepted, and derived members are optional
    let pretty = r#" { "format" : 1, "thread": {"id":"ID","version":1,"created_at":"2026-01-01T01:00:00+01:00",
        "updated_at":"2026-01-01T00:00:00Z","ttl_seconds":60}, "metadata":{}, "state":{"a": [ 1 ]},
        "history":{"first_seq":1,"next_seq":1,"items":[]} } "#;
    let small = client.thread();
    import(&client, "", &pretty.replace("ID", &small.id))
        .ok()
        .await;
    assert_eq!(small.state().await, r#"{"a":[1]}"#);
    assert_eq!(
        small.object().await["created_at"],
        "2026-01-01T00:00:00.000Z"
    );
}

async fn an_existing_thread_is_skipped_or_replaced(server: &Server) {
    let client = server.client();
    let thread = filled(&client).await;
    let document = export(&thread).await;
    thread.put("state", r#"{"later":1}"#).ok().await;

    let skipped = import(&client, "?if_exists=skip", &document).send().await;
    assert_eq!(skipped.status, 200);
    assert_eq!(skipped.json()["version"], 3);
    assert_eq!(thread.state().await, r#"{"later":1}"#);
    let replaced = import(&client, "?if_exists=replace", &document)
        .send()
        .await;
    assert_eq!(replaced.status, 201);
    assert_eq!(
        without_expiry(&export(&thread).await),
        without_expiry(&document)
    );
    let archives = client
        .get(&format!("/v1/archives/{}", thread.id))
        .bearer(API_SECRET);
    assert_eq!(archives.ok().await.json()["state"], json!({"later": 1}));
    import(&client, "?if_exists=fail", &document)
        .refused(400, "invalid_parameter")
        .await;
    import(&client, "?x=1", &document)
        .refused(400, "invalid_parameter")
        .await;
}

async fn a_repeat_of_an_import_gets_the_first_answer(server: &Server) {
    let client = server.client();
    let thread = filled(&client).await;
    let copy = client.thread();
    let document = export(&thread).await.replace(&thread.id, &copy.id);
    let once = |document: &str| import(&client, "", document).header("idempotency-key", "k");

    let first = once(&document).ok().await;
    let again = once(&document).ok().await;

    assert_eq!(first.text(), again.text());
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    let other = document.replace("\"title\"", "\"other\"");
    once(&other).refused(422, "idempotency_key_reused").await;
    let conditional = import(&client, "", &document).header("if-match", "*");
    conditional.refused(400, "invalid_parameter").await;
}

async fn an_invalid_document_is_refused(server: &Server) {
    let client = server.client();
    let thread = filled(&client).await;
    let id = new_id();
    let good = export(&thread).await.replace(&thread.id, &id);
    let many = (0..257).map(|number| json!({"key": number.to_string(), "value": ""}));
    let many = serde_json::to_string(&many.collect::<Vec<_>>()).unwrap();
    let value = "v".repeat(32_769);
    for (from, to, status, code) in [
        (r#""format":1"#, r#""format":2"#, 400, "invalid_parameter"),
        (r#""format":1"#, r#""form":1"#, 400, "invalid_parameter"),
        (&*id, "thrd_", 400, "invalid_thread_id"),
        (r#""version":2"#, r#""version":0"#, 400, "invalid_parameter"),
        (
            r#""version":2"#,
            r#""version":9999999999999999"#,
            400,
            "invalid_parameter",
        ),
        (
            r#""ttl_seconds":600"#,
            r#""ttl_seconds":0"#,
            400,
            "invalid_parameter",
        ),
        (
            r#""created_at":"2"#,
            r#""created_at":"x"#,
            400,
            "invalid_parameter",
        ),
        (
            r#""owner":"user-42","metadata":{"title":"a"},"state""#,
            r#""owner":"","metadata":{},"state""#,
            400,
            "invalid_parameter",
        ),
        (
            r#","metadata":{"title":"a"},"state""#,
            r#","metadata":[],"state""#,
            400,
            "invalid_parameter",
        ),
        (r#","state":{"#, r#","state":[{"#, 400, "invalid_json"),
        (r#""seq":2"#, r#""seq":1"#, 400, "invalid_parameter"),
        (r#""seq":2"#, r#""seq":3"#, 400, "invalid_parameter"),
        (r#""id":"2""#, r#""id":"1""#, 400, "invalid_parameter"),
        (r#""id":"2""#, r#""id":"""#, 400, "invalid_parameter"),
        (
            r#""next_seq":3"#,
            r#""next_seq":2"#,
            400,
            "invalid_parameter",
        ),
        (
            r#""status":"in_progress""#,
            r#""status":"over""#,
            400,
            "invalid_parameter",
        ),
        (
            r#""content":"one""#,
            r#""content":"""#,
            400,
            "invalid_parameter",
        ),
        (
            r#""tasks_version":3"#,
            r#""tasks_version":0"#,
            400,
            "invalid_parameter",
        ),
        (r#""key":"c""#, r#""key":"a/b""#, 400, "invalid_parameter"),
        (r#""key":"c""#, r#""key":"a b""#, 400, "invalid_key"),
        (
            r#""value":"","expires_at""#,
            &format!(r#""value":"{value}","expires_at""#),
            413,
            "value_too_large",
        ),
        (
            r#""keys":["#,
            &format!(r#""keys":{many},"x":["#),
            400,
            "invalid_parameter",
        ),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        let answer = import(&client, "", &bad).send().await;
        assert_eq!(
            (answer.status, &answer.json()["code"]),
            (status, &json!(code)),
            "{to}: {}",
            answer.text()
        );
    }
    let state = json!({"a": "x".repeat(1_048_576)}).to_string();
    let (before, rest) = good.split_once(r#","state":"#).unwrap();
    let (_, after) = rest.split_once(r#","scope":"#).unwrap();
    let large = format!(r#"{before},"state":{state},"scope":{after}"#);
    import(&client, "", &large)
        .refused(413, "state_too_large")
        .await;
    let absent = client.thread_of(&id);
    absent
        .by_api_key(Method::GET, "export")
        .refused(404, "not_found")
        .await;
    import(&client, "", &good).ok().await;
}

async fn the_largest_thread_fits(server: &Server) {
    let client = server.client();
    let copy = client.thread();
    let items: Vec<_> = (0..700)
        .map(|number| json!({"seq": number + 1, "id": format!("item-{number}"), "at": "2026-01-01T00:00:00.000Z", "value": "v".repeat(11_000)}))
        .collect();
    let document = json!({
        "format": 1,
        "thread": {"id": copy.id, "version": 9, "created_at": "2026-01-01T00:00:00.000Z",
            "updated_at": "2026-01-01T00:00:00.000Z", "ttl_seconds": 3600},
        "metadata": {}, "state": {"a": "x".repeat(1_048_000)},
        "scope": {"version": 1, "created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z",
            "keys": [], "tasks": [], "tasks_version": 0},
        "history": {"first_seq": 1, "next_seq": 701, "items": items},
    })
    .to_string();

    import(&client, "", &document).ok().await;

    let exported: Value = serde_json::from_str(&export(&copy).await).unwrap();
    let document: Value = serde_json::from_str(&document).unwrap();
    for part in ["state", "scope", "history"] {
        assert_eq!(exported[part], document[part]);
    }
    let fork = copy.by_api_key(Method::POST, "fork").ok().await;
    let fork = client.thread_of(fork.json()["id"].as_str().unwrap());
    let forked: Value = serde_json::from_str(&export(&fork).await).unwrap();
    assert_eq!(forked["history"], document["history"]);
    // this body exceeds the size limit for callers without an API key
    let stranger = client
        .post("/v1/threads/import")
        .body("x".repeat(3_000_000));
    stranger.refused(401, "api_key_required").await;
}

async fn export_all(client: &Client, query: &str) -> (Vec<String>, Value) {
    let answer = client
        .get(&format!("/v1/export{query}"))
        .bearer(API_SECRET)
        .ok()
        .await;
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    let text = answer.text();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    let last = lines.pop().unwrap();
    (lines, serde_json::from_str(&last).unwrap())
}

/// Environment variable with the number of threads to move between stores. The default is 1,000.
const THREAD_COUNT_VARIABLE: &str = "THREADKEEP_TEST_THREADS";

async fn create_one(client: &Client, number: usize) {
    match number % 10 {
        0 => drop(with_checkpoints_and_removals(client).await),
        1 => {
            let thread = client.thread();
            thread.put("state/k", "1").ok().await;
            thread.delete("").ok().await;
        }
        2 => drop(filled(client).await),
        _ => {
            let thread = client.thread();
            let large = "x".repeat(number % 200 * 100);
            let value = json!([number, large]).to_string();
            thread.put("state/k", &value).ok().await;
        }
    }
}

async fn threads_move_between_stores_without_loss(backend: Backend) {
    let other = match backend {
        Backend::Memory => Backend::Redis,
        _ => Backend::Memory,
    };
    let count = std::env::var(THREAD_COUNT_VARIABLE).map_or(1_000, |count| count.parse().unwrap());
    let mut server = Server::start(backend);
    let client = server.client();
    stream::iter(0..count)
        .for_each_concurrent(16, |number| create_one(&client, number))
        .await;
    let (lines, end) = export_all(&client, "").await;
    assert_eq!(
        (lines.len(), end),
        (count / 10 * 9, json!({"complete": true}))
    );
    let (owned, end) = export_all(&client, "?owner=user-42").await;
    assert_eq!(
        (owned.len(), end),
        (count / 10 * 2, json!({"complete": true}))
    );

    for next in [other, backend] {
        let to = Server::start(next);
        let client = to.client();
        stream::iter(&lines)
            .for_each_concurrent(16, |line| async {
                import(&client, "", line).ok().await;
            })
            .await;

        let (again, _) = export_all(&client, "").await;
        for (line, again) in lines.iter().zip(&again) {
            assert_eq!(without_expiry(again), without_expiry(line));
        }
        assert_eq!(again.len(), lines.len());
        let (owned_again, _) = export_all(&client, "?owner=user-42").await;
        assert_eq!(owned_again.len(), owned.len());
        server = to;
    }
    drop(server);
}

async fn an_export_resumes_after_a_thread(backend: Backend) {
    let server = Server::start(backend);
    let client = server.client();
    for _ in 0..5 {
        filled(&client).await;
    }
    let id = |line: &String| parsed(line)["thread"].clone();
    let (lines, _) = export_all(&client, "").await;
    let third = id(&lines[2])["id"].as_str().unwrap().to_owned();
    let (rest, end) = export_all(&client, &format!("?cursor={third}")).await;
    assert_eq!((&rest[..], end), (&lines[3..], json!({"complete": true})));

    let (lines, _) = export_all(&client, "?owner=user-42").await;
    let thread = id(&lines[2]);
    let created = parse_rfc3339(thread["created_at"].as_str().unwrap()).unwrap();
    let cursor = format!("{created}-{}", thread["id"].as_str().unwrap());
    let (rest, _) = export_all(&client, &format!("?owner=user-42&cursor={cursor}")).await;
    assert_eq!(rest, lines[3..]);
    for query in [
        "?cursor=x".to_owned(),
        format!("?cursor={cursor}"),
        format!("?owner=user-42&cursor={third}"),
    ] {
        let request = client.get(&format!("/v1/export{query}")).bearer(API_SECRET);
        request.refused(400, "invalid_cursor").await;
    }
    let none = export_all(&client, "?owner=nobody").await;
    assert_eq!(none, (Vec::new(), json!({"complete": true})));
    let head = client
        .request(Method::HEAD, "/v1/export")
        .bearer(API_SECRET)
        .ok()
        .await;
    assert!(head.text().is_empty());
    let html = client
        .get("/v1/export")
        .bearer(API_SECRET)
        .header("accept", "text/html");
    html.refused(406, "not_acceptable").await;
    client
        .get("/v1/export")
        .refused(401, "api_key_required")
        .await;
}

async fn an_export_needs_a_read_right_and_an_import_a_write_right(backend: Backend) {
    let (reader, writer) = (
        "a-secret-of-the-reader-long-enough",
        "a-secret-of-the-writer-long-enough",
    );
    let server = Server::builder(backend)
        .set("THREADKEEP_API_KEYS", format!("r:{reader},w:{writer}"))
        .set("THREADKEEP_API_KEY_RIGHTS", "r:threads.read,w:threads")
        .start();
    let client = server.client();
    let thread = client.thread();
    thread.put("state/k", "1").ok().await;
    let path = format!("/v1/threads/{}/export", thread.id);
    let document = client.get(&path).bearer(reader).ok().await.text();
    client.get("/v1/export").bearer(reader).ok().await;

    let import = |key: &str| {
        client
            .post("/v1/threads/import?if_exists=replace")
            .bearer(key)
            .json(&document)
    };
    let problem = import(reader).refused(403, "right_missing").await;
    assert_eq!(problem["right"], "threads");
    import(writer).ok().await;
    thread.get("export").refused(401, "api_key_required").await;
    let own = client.get(&path).header("x-thread-id", &thread.signed);
    own.refused(401, "api_key_required").await;
    thread.get("export").bearer(reader).ok().await;
}

over_both_stores![
    a_document_contains_the_whole_thread,
    a_document_has_checkpoints_and_history_gaps,
    impossible_checkpoints_are_refused,
    an_import_keeps_everything_to_the_byte,
    an_existing_thread_is_skipped_or_replaced,
    a_repeat_of_an_import_gets_the_first_answer,
    an_invalid_document_is_refused,
    the_largest_thread_fits,
];

with_own_servers![
    threads_move_between_stores_without_loss,
    an_export_resumes_after_a_thread,
    an_export_needs_a_read_right_and_an_import_a_write_right,
];
