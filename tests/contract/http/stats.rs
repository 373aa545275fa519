use reqwest::Method;
use serde_json::{Value, json};

use crate::support::client::Request;
use crate::support::server::{API_SECRET, Backend, Server};

fn stats_request(server: &Server) -> Request {
    server.client().get("/v1/stats").bearer(API_SECRET)
}

async fn stats(server: &Server) -> Value {
    stats_request(server).ok().await.json()
}

async fn the_busiest_threads_and_the_largest_states_are_listed(backend: Backend) {
    let server = Server::start(backend);
    let client = server.client();
    let [written, read, large] = [(); 3].map(|()| client.thread());
    for _ in 0..5 {
        written.put("state/k", "\"0123456789\"").ok().await;
    }
    // the history counts towards the size of its thread
    let items = r#"{"items":[{"id":"a","value":"0123456789"}]}"#;
    written.post("history", items).ok().await;
    read.put("state/k", "1").ok().await;
    for _ in 0..7 {
        read.get("state").ok().await;
    }
    // peeks do not count as reads
    for peek in ["", "state", "state/k", "keys", "history"] {
        read.get(&format!("{peek}?peek=true")).ok().await;
    }
    let text = format!("\"{}\"", "x".repeat(1_000));
    large.put("state/k", &text).ok().await;
    large.put("state/k", "1").ok().await;
    // rejected writes, replays, and requests to missing threads do not count
    written
        .put("state/k", "{")
        .refused(400, "invalid_json")
        .await;
    let stale = written.put("state/k", "1").header("if-match", "\"99\"");
    stale.refused(412, "version_mismatch").await;
    let repeat = || large.put("state/l", "2").header("idempotency-key", "a");
    repeat().ok().await;
    repeat().ok().await;

    let threads = &stats(&server).await["threads"];

    let (written, read, large) = (&written.id, &read.id, &large.id);
    assert_eq!(
        threads["by_writes"],
        json!([
            {"thread_id": written, "writes": 6},
            {"thread_id": large, "writes": 3},
            {"thread_id": read, "writes": 1},
        ])
    );
    assert_eq!(
        threads["by_reads"],
        json!([{"thread_id": read, "reads": 7}])
    );
    assert_eq!(
        threads["by_bytes"],
        json!([
            {"thread_id": large, "bytes": 1_004},
            {"thread_id": written, "bytes": 72},
            {"thread_id": read, "bytes": 50},
        ])
    );
    let largest = threads["largest"].as_array().unwrap();
    let sizes = largest
        .iter()
        .map(|state| (&state["thread_id"], &state["size_bytes"]));
    let sizes: Vec<_> = sizes.collect();
    assert_eq!(
        sizes,
        [
            (&json!(large), &json!(1_008)),
            (&json!(written), &json!(18)),
            (&json!(read), &json!(7)),
        ]
    );
}

async fn requests_and_store_calls_are_counted_with_their_durations(backend: Backend) {
    let server = Server::start(backend);
    let thread = server.client().thread();
    for _ in 0..3 {
        thread.put("state/a-key-to-hide", "1").ok().await;
    }
    thread
        .get("state/absent")
        .refused(404, "key_not_found")
        .await;
    server.client().get("/nowhere/at-all").send().await;

    let stats = stats(&server).await;

    let text = stats.to_string();
    assert!(
        !text.contains("to-hide") && !text.contains("at-all"),
        "{text}"
    );
    let replica = &stats["replica"];
    assert_eq!(replica["id"].as_str().unwrap().len(), 16);
    assert_eq!(replica["version"], env!("CARGO_PKG_VERSION"));
    assert!(replica["started_at"].as_str() < replica["now"].as_str());
    let route = |method: &str, route: &str| {
        let routes = stats["routes"].as_array().unwrap();
        let is_route = |row: &&Value| row["method"] == method && row["route"] == route;
        routes
            .iter()
            .find(is_route)
            .unwrap_or_else(|| panic!("{method} {route} in {text}"))
    };
    let key = "/v1/threads/current/state/{key}";
    let puts = route("PUT", key);
    assert_eq!(puts["requests_total"], 3);
    assert_eq!(puts["window"]["requests"], 3);
    let ms = |name: &str| puts["window"][name].as_f64().unwrap();
    let ordered = [0.0, ms("p50_ms"), ms("p90_ms"), ms("p99_ms"), ms("max_ms")];
    assert!(ordered.is_sorted() && ordered[1] > 0.0, "{ordered:?}");
    assert_eq!(route("GET", key)["window"]["client_errors"], 1);
    assert_eq!(route("GET", "unmatched")["requests_total"], 1);
    assert_eq!(stats["all_routes"]["requests_total"], 5);
    assert_eq!(stats["all_routes"]["window"]["client_errors"], 2);
    let calls = stats["store"].as_array().unwrap().iter();
    let write = |row: &&Value| row["part"] == "threads" && row["operation"] == "write";
    let writes = calls.clone().find(write).unwrap();
    assert_eq!(writes["calls_total"], 3);
    assert_eq!(writes["failures_total"], 0);
    assert!(writes["window"]["max_ms"].as_f64().unwrap() <= ms("max_ms"));
    assert!(stats["window_seconds"].as_f64().unwrap() <= 60.0);
    let has_memory = backend == Backend::Memory;
    assert_eq!(stats["counts"]["bytes"].is_u64(), has_memory);
    let store = if has_memory { "memory" } else { "redis" };
    assert_eq!(replica["store"], store);
    assert!(stats["counts"]["threads"].as_u64() >= Some(1), "{stats}");
    assert!(stats["counts"]["connections"].as_u64() >= Some(1));
}

async fn calls_of_other_protocols_count_for_their_threads(backend: Backend) {
    let server = Server::start(backend);
    let client = server.client();
    let made = client.post("/v1/conversations").bearer(API_SECRET);
    let made = made.json(r#"{"items":[{"role":"user","content":"Hello"}]}"#);
    let id = made.ok().await.json()["id"].clone();
    let items = format!("/v1/conversations/{}/items", id.as_str().unwrap());
    for _ in 0..2 {
        client.get(&items).bearer(API_SECRET).ok().await;
    }

    let threads = &stats(&server).await["threads"];

    let read = &threads["by_reads"][0];
    assert!(read["reads"].as_u64() >= Some(2), "{threads}");
    assert_eq!(threads["by_writes"][0]["thread_id"], read["thread_id"]);
}

async fn only_a_key_with_the_right_reads_statistics(server: &Server) {
    let client = server.client();

    client
        .get("/v1/stats")
        .refused(401, "api_key_required")
        .await;
    let unknown = client.get("/v1/stats").bearer("wrong");
    unknown.refused(401, "invalid_api_key").await;
    let post = client.post("/v1/stats").bearer(API_SECRET);
    post.refused(405, "method_not_allowed").await;
    let query = client.get("/v1/stats?seconds=5").bearer(API_SECRET);
    query.refused(400, "invalid_parameter").await;
    let text = stats_request(server).header("accept", "text/html");
    text.refused(406, "not_acceptable").await;
    let head = client.request(Method::HEAD, "/v1/stats").bearer(API_SECRET);
    assert_eq!(head.ok().await.text(), "");
}

with_own_servers!(
    the_busiest_threads_and_the_largest_states_are_listed,
    requests_and_store_calls_are_counted_with_their_durations,
    calls_of_other_protocols_count_for_their_threads,
);
over_both_stores!(only_a_key_with_the_right_reads_statistics);
