use reqwest::Method;
use serde_json::json;

use crate::support::server::{API_SECRET, Backend, Server};

async fn a_browser_reads_reserved_keys_and_writes_only_others(backend: Backend) {
    let server = Server::builder(backend);
    let server = server
        .set("THREADKEEP_RESERVED_KEYS", "messages,assistant.*")
        .start();
    let client = server.client();
    let thread = client.thread();
    thread.put("state/draft", "1").ok().await;
    let by_key = |method, path: &str| thread.by_api_key(method, path);
    let messages = by_key(Method::PUT, "state/messages");
    messages.json(r#"[{"role":"assistant"}]"#).ok().await;
    let saved = by_key(Method::POST, "checkpoints").send().await;
    assert_eq!(saved.status, 201, "{}", saved.text());
    let before = thread.get("state").ok().await;

    for refused in [
        thread.put("state/messages", "[]"),
        thread.put("state/assistant.name", "1"),
        thread.post("state/messages/push", "1"),
        thread.post("state/assistant.calls/increment", ""),
        thread.delete("state/messages"),
        thread.put("state", "{}"),
        thread.delete("state"),
        thread.post("checkpoints/1/restore", ""),
        thread.merge_patch(r#"{"messages":null}"#),
        client
            .post("/v1/threads")
            .json(r#"{"state":{"messages":[]}}"#),
    ] {
        refused.refused(403, "key_reserved").await;
    }
    let operations = json!({"operations": [
        {"op": "set", "key": "draft", "value": 2},
        {"op": "pop", "key": "messages"},
    ]});
    let merge = thread.patch("state", &operations.to_string());
    let refused = merge.refused(403, "key_reserved").await;
    assert_eq!(refused["operation"], 1);
    assert_eq!(thread.get("state").ok().await.etag(), before.etag());

    thread.put("state/assistant", "1").ok().await;
    thread.post("state/list/push", "1").ok().await;
    let messages = thread.get("state/messages").ok().await;
    assert_eq!(messages.text(), r#"[{"role":"assistant"}]"#);
    by_key(Method::POST, "checkpoints/1/restore").ok().await;
    by_key(Method::PUT, "state").json("{}").ok().await;
    // a request with both a signed id and an API key counts as a back end's request
    let own = thread.put("state/messages", "[]");
    own.bearer(API_SECRET).ok().await;
}

super::with_own_servers! {
    a_browser_reads_reserved_keys_and_writes_only_others,
}
