use serde_json::{Value, json};

use super::{Mcp, unique};
use crate::http::over_both_stores;
use crate::support::server::{API_SECRET, Server};

async fn read(mcp: &Mcp, uri: &str) -> Value {
    let mut result = mcp.result("resources/read", json!({"uri": uri})).await;
    let contents = result["contents"].take();
    assert_eq!(contents.as_array().unwrap().len(), 1);
    assert_eq!(contents[0]["uri"], uri);
    contents[0].clone()
}

async fn uris(mcp: &Mcp, cursor: Option<&str>) -> (Vec<String>, Option<String>) {
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
    let result = mcp.result("resources/list", params).await;
    let uri = |resource: &Value| resource["uri"].as_str().unwrap().to_owned();
    let resources = result["resources"].as_array().unwrap();
    let next = result.get("nextCursor").map(|next| next.as_str().unwrap());
    (resources.iter().map(uri).collect(), next.map(str::to_owned))
}

async fn keys_are_listed_and_read_by_uri(server: &Server) {
    let mcp = Mcp::own(&server.client());
    mcp.call("kv_write", json!({"key": "user/name", "value": "Ada"}))
        .await;

    let (listed, next) = uris(&mcp, None).await;

    let uri = "threadkeep://kv/user%2Fname";
    assert_eq!(listed, ["threadkeep://tasks", uri]);
    assert_eq!(next, None);
    for uri in [uri, "threadkeep://kv/user/name"] {
        let content = read(&mcp, uri).await;
        assert_eq!(content["text"], "Ada");
        assert_eq!(content["mimeType"], "text/plain");
    }
}

async fn tasks_are_read_as_json(server: &Server) {
    let mcp = Mcp::own(&server.client());
    let task = json!({"content": "write", "status": "in_progress"});
    mcp.call("tasks_write", json!({"tasks": [task]})).await;

    let content = read(&mcp, "threadkeep://tasks").await;

    assert_eq!(content["mimeType"], "application/json");
    let text = content["text"].as_str().unwrap();
    let tasks: Value = serde_json::from_str(text).unwrap();
    assert_eq!(tasks["tasks"][0]["content"], "write");
    assert_eq!(tasks["tasks"][0]["status"], "in_progress");
}

async fn keys_have_a_uri_template(server: &Server) {
    let mcp = Mcp::own(&server.client());

    let result = mcp.result("resources/templates/list", json!({})).await;

    let templates = &result["resourceTemplates"];
    assert_eq!(templates[0]["uriTemplate"], "threadkeep://kv/{key}");
}

async fn many_keys_are_listed_in_pages(server: &Server) {
    let mcp = Mcp::own(&server.client());
    for number in 0..256 {
        let arguments = json!({"key": format!("k{number:03}"), "value": ""});
        mcp.call("kv_write", arguments).await;
    }

    let mut listed = Vec::new();
    let mut cursor = None;
    loop {
        let (part, next) = uris(&mcp, cursor.as_deref()).await;
        assert!(part.len() <= 101, "{}", part.len());
        listed.extend(part);
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }

    let keys = (0..256).map(|number| format!("threadkeep://kv/k{number:03}"));
    let expected = ["threadkeep://tasks".to_owned()].into_iter().chain(keys);
    assert_eq!(listed, expected.collect::<Vec<_>>());
    for bad in ["", "=", "%", "/w"] {
        let error = mcp.error("resources/list", json!({"cursor": bad})).await;
        assert_eq!(error["code"], -32602, "{bad}");
    }
}

async fn keys_with_any_text_have_uris(server: &Server) {
    let client = server.client();
    let name = unique();
    let mcp = Mcp::session(&client, &name);
    let key = "a b/é\n?#%";
    let body = json!({"scope": format!("session:{name}"), "key": key, "value": "v"});
    let set = client.post("/v1/scopes/keys/set").bearer(API_SECRET);
    set.json(&body.to_string()).ok().await;

    let (listed, _) = uris(&mcp, None).await;

    assert_eq!(read(&mcp, &listed[1]).await["text"], "v");
}

async fn missing_resources_are_not_found(server: &Server) {
    let client = server.client();
    let (mcp, other) = (Mcp::own(&client), Mcp::own(&client));
    other
        .call("kv_write", json!({"key": "k", "value": "v"}))
        .await;

    for uri in [
        "threadkeep://kv/k",
        "threadkeep://kv/%ff",
        "threadkeep://keys/k",
        "threadkeep://tasks/0",
        "file:///etc/passwd",
        "",
        &format!("threadkeep://kv/{}", "k".repeat(2_000)),
    ] {
        let error = mcp.error("resources/read", json!({"uri": uri})).await;
        assert_eq!(error["code"], -32002, "{uri}: {error}");
    }
}

over_both_stores!(
    keys_are_listed_and_read_by_uri,
    tasks_are_read_as_json,
    keys_have_a_uri_template,
    many_keys_are_listed_in_pages,
    keys_with_any_text_have_uris,
    missing_resources_are_not_found,
);
