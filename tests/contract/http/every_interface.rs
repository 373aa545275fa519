use reqwest::Method;
use serde_json::json;

use crate::support::client::{Answer, OwnThread, Request, key_path};
use crate::support::server::{API_SECRET, Server};

const NESTING_MAX: usize = 512;
const KEY_BYTES_MAX: usize = 256;

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

fn nested_objects(levels: usize) -> String {
    format!(
        "{}{{}}{}",
        r#"{"":"#.repeat(levels - 1),
        "}".repeat(levels - 1)
    )
}

/// Returns values that one interface might accept and another might reject. The last values are nested too deeply for
/// some or all interfaces.
fn values() -> Vec<String> {
    let plain = [
        "1e400",
        "-0.0",
        "123456789012345678901234567890",
        r#""\ud800""#,
        r#""\u0000 \u2028""#,
        r#"{"a":1,"a":2}"#,
        r#"{"\ud800":"\ud800"}"#,
        "[]",
        "{}",
        "null",
    ];
    let text = format!("\"{}\"", "\\u0001".repeat(100_000));
    let deep = [
        NESTING_MAX - 2,
        NESTING_MAX - 1,
        NESTING_MAX,
        NESTING_MAX + 1,
    ];
    let deep = deep
        .into_iter()
        .flat_map(|levels| [nested(levels), nested_objects(levels)]);
    plain
        .into_iter()
        .map(Into::into)
        .chain([text])
        .chain(deep)
        .collect()
}

fn keys() -> [String; 5] {
    let longest = "k".repeat(KEY_BYTES_MAX);
    [
        "k".into(),
        longest,
        "a/b?c%d".into(),
        "\u{1F600}".into(),
        "__proto__".into(),
    ]
}

fn openai(thread: &OwnThread, method: Method, path: &str) -> Request {
    let conversation = thread.id.replace("thrd_", "conv_");
    let path = format!("/v1/conversations/{conversation}/{path}");
    thread.client().request(method, &path).bearer(API_SECRET)
}

fn writes(thread: &OwnThread, key: &str, value: &str) -> Vec<Request> {
    let name = json!(key);
    let at_key = key_path(key);
    let item = |id: &str| format!(r#"{{"id":"{id}","value":{value}}}"#);
    let message =
        format!(r#"{{"items":[{{"type":"message","role":"user","content":"a","x":{value}}}]}}"#);
    vec![
        thread.put("state", &format!(r#"{{{name}:{value}}}"#)),
        thread.put(&at_key, value),
        thread.put(&at_key, "[]"),
        thread.post(&format!("{at_key}/push"), value),
        thread.post(&format!("{at_key}/push?max_records=1"), value),
        thread.put("state", "{}"),
        thread.merge(&format!(
            r#"[{{"op":"push","key":{name},"value":{value}}}]"#
        )),
        thread.merge(&format!(r#"[{{"op":"set","key":{name},"value":{value}}}]"#)),
        thread.merge(&format!(r#"[{{"op":"append","value":{value}}}]"#)),
        thread.merge_patch(&format!(r#"{{{name}:{value}}}"#)),
        thread.merge_patch(&format!(r#"{{{name}:{{"in":{value}}}}}"#)),
        thread.merge_patch(&format!(r#"{{"a":{{"in":{value}}},"b":[{value}]}}"#)),
        thread.patch("", &format!(r#"{{"metadata":{{"in":{value}}}}}"#)),
        thread.patch("", &format!(r#"{{"metadata":{{"in":{{"in":{value}}}}}}}"#)),
        thread.post("history", &format!(r#"{{"items":[{}]}}"#, item("one"))),
        thread.post("history", &item("two")),
        thread.post_with_thread_id(
            "/v1/scopes/keys/set",
            &format!(
                r#"{{"scope":"thread:current","key":{name},"value":{}}}"#,
                json!(value)
            ),
        ),
        thread.post_with_thread_id(
            "/v1/tools/kv_write",
            &format!(
                r#"{{"scope":"thread:current","arguments":{{"key":{name},"value":{value}}}}}"#
            ),
        ),
        openai(thread, Method::POST, "items").json(&message),
    ]
}

fn reads(thread: &OwnThread, key: &str) -> Vec<Request> {
    let mut reads: Vec<_> = [
        "",
        "state",
        "keys",
        "history",
        "history?order=desc&limit=100",
        "checkpoints",
        "export",
        "?peek=true",
        "state?peek=true",
        "history?peek=true",
    ]
    .map(|path| thread.by_api_key(Method::GET, path))
    .into();
    reads.push(thread.get(&format!(
        "state?key={}",
        key_path(key).trim_start_matches("state/")
    )));
    reads.push(openai(thread, Method::GET, "items?limit=100"));
    reads.push(thread.post_with_thread_id(
        "/v1/scopes/keys/get",
        r#"{"scope":"thread:current","keys":["k"]}"#,
    ));
    reads
}

async fn succeeds(step: &str, request: Request) -> Answer {
    let answer = request.send().await;
    let text = answer.text();
    let shown: String = text.chars().take(300).collect();
    assert!(answer.status < 300, "{step}: {} {shown}", answer.status);
    answer
}

fn id_of(answer: &Answer) -> String {
    let (id, _) = answer
        .header("x-thread-id")
        .unwrap()
        .split_once(';')
        .unwrap();
    id.to_owned()
}

fn content(document: &str) -> String {
    let from = document.find(r#""ttl_seconds""#).unwrap();
    document[from..].to_owned()
}

async fn assert_readable_by_all(thread: &OwnThread, key: &str) {
    for (index, read) in reads(thread, key).into_iter().enumerate() {
        succeeds(&format!("read {index}"), read).await;
    }
    let client = thread.client();
    let document = succeeds("export", thread.by_api_key(Method::GET, "export")).await;
    let fork = succeeds("fork", thread.by_api_key(Method::POST, "fork").json("{}")).await;
    let fork = client.thread_of(&id_of(&fork));
    let saved = fork.by_api_key(Method::POST, "checkpoints").json("{}");
    succeeds("checkpoint", saved).await;
    let read = fork.by_api_key(Method::GET, "checkpoints/1");
    succeeds("read of a checkpoint", read).await;
    succeeds("write", fork.put("state", "{}")).await;
    let restored = fork.by_api_key(Method::POST, "checkpoints/1/restore");
    succeeds("restore", restored).await;
    let state = succeeds("state", thread.get("state")).await.text();
    assert_eq!(succeeds("state", fork.get("state")).await.text(), state);

    let new_id = succeeds("rotation", fork.post("rotate", "")).await;
    let rotated = client.thread_of(&id_of(&new_id));
    assert_eq!(succeeds("state", rotated.get("state")).await.text(), state);
    succeeds("end", rotated.delete("")).await;
    let archive = client
        .get(&format!("/v1/archives/{}", rotated.id))
        .bearer(API_SECRET);
    succeeds("archive", archive).await;

    // the import recreates the original thread with its id and all its content
    let import = client
        .post("/v1/threads/import?if_exists=replace")
        .bearer(API_SECRET);
    succeeds("import", import.json(&document.text())).await;
    let again = succeeds("export", thread.by_api_key(Method::GET, "export")).await;
    assert_eq!(content(&again.text()), content(&document.text()));
}

async fn every_interface_reads_what_another_wrote(server: &Server) {
    let client = server.client();
    let mut written = 0;
    for (index, value) in values().iter().enumerate() {
        let key = &keys()[index % keys().len()];
        let thread = client.thread();
        for (number, write) in writes(&thread, key, value).into_iter().enumerate() {
            let answer = write.send().await;
            let text: String = answer.text().chars().take(300).collect();
            match answer.status {
                200..300 => written += 1,
                status => assert!(
                    matches!(status, 400 | 409 | 413),
                    "{index} {number}: {text}"
                ),
            }
        }
        assert_readable_by_all(&thread, key).await;
    }
    assert!(written > 250, "{written}");
}

async fn a_push_cannot_exceed_the_nesting_limit(server: &Server) {
    let thread = server.client().thread();
    let deepest = nested(NESTING_MAX - 1);
    thread.post("state/k/push", &deepest).ok().await;

    let too_deep = nested(NESTING_MAX);
    let push = format!(r#"[{{"op":"clear"}},{{"op":"push","key":"k","value":{too_deep}}}]"#);
    let problem = thread
        .post("state/k/push", &too_deep)
        .refused(400, "invalid_json")
        .await;
    assert_eq!(problem["operation"], 0);
    let problem = thread.merge(&push).refused(400, "invalid_json").await;
    assert_eq!(problem["operation"], 1);

    let state = thread.get("state").ok().await.text();
    assert_eq!(state, format!(r#"{{"k":[{deepest}]}}"#));
}

over_both_stores!(
    every_interface_reads_what_another_wrote,
    a_push_cannot_exceed_the_nesting_limit,
);
