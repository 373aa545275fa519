use reqwest::Method;
use serde_json::{Value, json};

use super::entries::Space;
use crate::support::client::{Client, new_id};
use crate::support::server::{API_SECRET, Backend, Server};

async fn keys(space: &Space, query: &str) -> (Vec<String>, usize) {
    let (mut keys, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let page = space.get(&format!("?{query}{cursor}")).ok().await.json();
        let listed = page["entries"].as_array().unwrap().iter();
        keys.extend(listed.map(|entry| entry["key"].as_str().unwrap().to_owned()));
        pages += 1;
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (keys, pages),
        }
    }
}

async fn keys_are_listed_page_by_page(server: &Server) {
    let space = Space::new(server);
    let empty = space.get("").ok().await;
    assert_eq!(empty.text(), r#"{"entries":[],"next_cursor":null}"#);
    for number in 0..25 {
        let path = format!("user%2F{number:02}?ttl_seconds=100");
        let put = space.put(&path, "12345");
        put.header("content-type", "text/plain").ok().await;
    }
    space.put("other", "1").ok().await;

    let (listed, pages) = keys(&space, "prefix=user%2F&limit=4").await;
    let expected: Vec<_> = (0..25).map(|number| format!("user/{number:02}")).collect();
    assert_eq!(listed, expected);
    assert!(pages >= 7);
    assert_eq!(keys(&space, "prefix=user/1").await.0, expected[10..20]);
    assert_eq!(keys(&space, "").await.0.len(), 26);
    assert_eq!(
        keys(&space, "limit=1000").await,
        (keys(&space, "").await.0, 1)
    );
    let first = space.get("?prefix=user&limit=1").ok().await.json();
    let first = &first["entries"][0];
    assert_eq!(first["size_bytes"], 5);
    assert_eq!(first["content_type"], "text/plain");
    let entry = space.get("user%2F00").ok().await;
    assert_eq!(first["expires_at"].as_str(), entry.header("x-expires-at"));
    assert!(first["updated_at"].is_string());
    let head = space.request(Method::HEAD, "").ok().await;
    assert!(head.body.is_empty());
}

async fn a_cursor_is_valid_only_for_its_list(server: &Server) {
    let (space, other) = (Space::new(server), Space::new(server));
    for key in ["a1", "a2", "a3"] {
        space.put(key, "x").ok().await;
        other.put(key, "x").ok().await;
    }
    let page = space.get("?limit=1&prefix=a").ok().await.json();
    let cursor = page["next_cursor"].as_str().unwrap();

    for request in [
        space.get(&format!("?cursor={cursor}")),
        space.get(&format!("?cursor={cursor}&prefix=a1")),
        other.get(&format!("?cursor={cursor}&prefix=a")),
        space.get("?cursor=x"),
        list(&space.client, &format!("cursor={cursor}")),
    ] {
        request.refused(400, "invalid_cursor").await;
    }
    for query in [
        "limit=0",
        "limit=1001",
        "prefix=%0A",
        "prefix=a&prefix=a",
        "after=1",
    ] {
        let request = space.get(&format!("?{query}"));
        request.refused(400, "invalid_parameter").await;
    }
    let next = space.get(&format!("?cursor={cursor}&prefix=a&limit=5"));
    let next = next.ok().await.json();
    assert_eq!(next["entries"].as_array().unwrap().len(), 2);
}

fn list(client: &Client, query: &str) -> crate::support::client::Request {
    client.get(&format!("/v1/kv?{query}")).bearer(API_SECRET)
}

async fn described(space: &Space) -> Value {
    let list = list(&space.client, &format!("namespace={}", space.name));
    list.ok().await.json()["namespaces"][0].clone()
}

async fn a_namespace_reports_its_entries_and_size(server: &Server) {
    let space = Space::new(server);
    assert_eq!(described(&space).await, Value::Null);
    space.put("a", "12").ok().await;
    space.put("b", "345").ok().await;
    space.put("a", "6").ok().await;

    let object = described(&space).await;

    assert_eq!(object["namespace"], space.name.as_str());
    assert_eq!(object["entries"], 2);
    assert_eq!(object["size_bytes"], 4);
    assert_eq!(object["default_ttl_seconds"], Value::Null);
    assert!(object["created_at"].is_string());
    let listed = space.get("").ok().await.json();
    assert_eq!(object["last_used_at"], listed["entries"][0]["updated_at"]);
    space.delete("a").ok().await;
    space.delete("b").ok().await;
    let object = described(&space).await;
    assert_eq!(
        (&object["entries"], &object["size_bytes"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(object["last_used_at"], Value::Null);
}

async fn a_namespace_has_an_idle_ttl(server: &Server) {
    let space = Space::new(server);
    let set = async |body: &str| {
        let put = space.request(Method::PUT, "").json(body);
        put.ok().await.json()
    };

    let made = set(r#"{"idle_ttl_seconds":60,"default_ttl_seconds":90}"#).await;
    assert_eq!(made["idle_ttl_seconds"], 60);
    assert_eq!(made["default_ttl_seconds"], 90);
    assert!(made["expires_at"].as_str() > made["created_at"].as_str());
    assert_eq!(described(&space).await, made);
    let longest = set(r#"{"idle_ttl_seconds":946080000}"#).await;
    assert_eq!(longest["idle_ttl_seconds"], 946_080_000);
    // a setting that the body omits is removed
    assert_eq!(longest["default_ttl_seconds"], Value::Null);
    for body in [r#"{"idle_ttl_seconds":null}"#, "{}"] {
        let unset = set(body).await;
        assert_eq!(unset["idle_ttl_seconds"], Value::Null);
        assert_eq!(unset["expires_at"], Value::Null);
    }

    for body in [
        r#"{"idle_ttl_seconds":59}"#,
        r#"{"idle_ttl_seconds":0}"#,
        r#"{"idle_ttl_seconds":946080001}"#,
        r#"{"idle_ttl_seconds":"60"}"#,
    ] {
        let put = space.request(Method::PUT, "").json(body);
        put.refused(400, "invalid_parameter").await;
    }
}

async fn a_namespace_has_a_default_ttl_for_its_entries(server: &Server) {
    let space = Space::new(server);
    let set = async |body: &str| {
        let put = space.request(Method::PUT, "").json(body);
        put.ok().await.json()["default_ttl_seconds"].clone()
    };
    let expires = async |path: &str| {
        let receipt = space.put(path, "x").ok().await.json();
        receipt["expires_at"].is_string()
    };

    assert_eq!(set(r#"{"default_ttl_seconds":60}"#).await, 60);
    assert_eq!(described(&space).await["default_ttl_seconds"], 60);
    assert!(expires("k").await);
    assert!(!expires("k?ttl_seconds=0").await);
    assert_eq!(set(r#"{"default_ttl_seconds":0}"#).await, 0);
    assert!(!expires("k").await);
    assert!(expires("k?ttl_seconds=31536000").await);
    assert_eq!(set(r#"{"default_ttl_seconds":null}"#).await, Value::Null);
    assert_eq!(set("{}").await, Value::Null);

    for body in [
        r#"{"default_ttl_seconds":-1}"#,
        r#"{"default_ttl_seconds":31536001}"#,
        r#"{"default_ttl_seconds":"60"}"#,
        r#"{"default_ttl_seconds":60.0}"#,
        r#"{"ttl_seconds":60}"#,
        "[]",
    ] {
        let put = space.request(Method::PUT, "").json(body);
        put.refused(400, "invalid_parameter").await;
    }
    let put = space.request(Method::PUT, "").json("{");
    put.refused(400, "invalid_json").await;
    let put = space.request(Method::PUT, "").body("{}");
    let put = put.header("content-type", "text/plain");
    put.refused(415, "unsupported_media_type").await;
}

async fn the_default_ttl_of_all_namespaces_is_a_setting(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_KV_DEFAULT_TTL_SECONDS", 604_800)
        .start();
    let space = Space::new(&server);

    let receipt = space.put("k", "x").ok().await.json();
    let body = r#"{"default_ttl_seconds":0}"#;
    space.request(Method::PUT, "").json(body).ok().await;
    let own = space.put("k", "x").ok().await.json();

    assert!(receipt["expires_at"].is_string());
    assert_eq!(own["expires_at"], Value::Null);
}

async fn namespaces_are_listed_newest_first(backend: Backend) {
    let server = Server::start(backend);
    let client = server.client();
    let empty = list(&client, "").ok().await;
    assert_eq!(empty.text(), r#"{"namespaces":[],"next_cursor":null}"#);
    let spaces: Vec<_> = (0..12).map(|_| Space::new(&server)).collect();
    for space in &spaces {
        space.put("k", "x").ok().await;
    }
    let names = async |query: &str| {
        let (mut names, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = list(&client, &format!("{query}{cursor}")).ok().await.json();
            let listed = page["namespaces"].as_array().unwrap().iter();
            names.extend(listed.cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return names,
            }
        }
    };

    for query in ["", "limit=5", "limit=1000"] {
        let listed = names(query).await;
        assert_eq!(listed.len(), 12, "{query}");
        let times = listed
            .iter()
            .map(|each| each["created_at"].as_str().unwrap());
        assert!(times.is_sorted_by(|one, other| one >= other));
        assert!(listed.iter().all(|each| each["entries"] == 1));
        for space in &spaces {
            let rows = listed
                .iter()
                .filter(|each| each["namespace"] == space.name.as_str());
            assert_eq!(rows.count(), 1);
        }
    }
    let (one, other) = (&spaces[3].name, &spaces[7].name);
    let query = format!("namespace={one}&namespace={other}&namespace={one}&namespace=none");
    assert_eq!(names(&query).await.len(), 2);
    for query in ["namespace=", "namespace=a%20b"] {
        list(&client, query).refused(400, "invalid_namespace").await;
    }
    let many = vec![format!("namespace={one}x"); 101];
    let distinct = many
        .iter()
        .enumerate()
        .map(|(n, name)| format!("{name}{n}"));
    let distinct = distinct.collect::<Vec<_>>().join("&");
    for query in [
        format!("namespace={one}&limit=5"),
        distinct,
        "name=x".into(),
        "limit=0".into(),
    ] {
        list(&client, &query)
            .refused(400, "invalid_parameter")
            .await;
    }
}

async fn a_namespace_is_deleted_with_its_entries(server: &Server) {
    let (space, other) = (Space::new(server), Space::new(server));
    for number in 0..50 {
        space.put(&number.to_string(), "x").ok().await;
    }
    other.put("0", "x").ok().await;

    assert_eq!(space.delete("").ok().await.text(), r#"{"deleted":50}"#);
    assert_eq!(space.delete("").ok().await.text(), r#"{"deleted":0}"#);

    assert_eq!(described(&space).await, Value::Null);
    space.get("0").refused(404, "key_not_found").await;
    assert_eq!(keys(&space, "").await.0.len(), 0);
    assert_eq!(other.get("0").ok().await.text(), "x");
    let deletion = space.delete("?force=1");
    deletion.refused(400, "invalid_parameter").await;
}

async fn load_cache_save(space: &Space, key: &str) -> (String, bool) {
    let cached = space.get(key).send().await;
    if cached.status == 200 {
        return (cached.text(), true);
    }
    cached.problem(404, "key_not_found");
    let value = format!("computed for {key}");
    let saved = space.put(&format!("{key}?ttl_seconds=300"), value.clone());
    // if several clients save at once, the first one wins
    let saved = saved.header("if-none-match", "*").send().await;
    if saved.status == 412 {
        return (space.get(key).ok().await.text(), true);
    }
    assert_eq!(saved.status, 201);
    (value, false)
}

async fn a_cached_value_is_computed_once(backend: Backend) {
    let server = Server::start(backend);
    let space = Space::new(&server);

    let first = load_cache_save(&space, "a").await;
    let second = load_cache_save(&space, "a").await;

    assert_eq!(first, ("computed for a".into(), false));
    assert_eq!(second, ("computed for a".into(), true));
    let concurrent = (0..10).map(|_| load_cache_save(&space, "b"));
    let concurrent = futures_util::future::join_all(concurrent).await;
    let computed = concurrent.iter().filter(|(_, was_cached)| !was_cached);
    assert_eq!(computed.count(), 1);
    assert!(
        concurrent
            .iter()
            .all(|(value, _)| value == "computed for b")
    );
}

async fn a_listener_can_store_the_archive_of_an_ended_thread(backend: Backend) {
    let server = Server::start(backend);
    let client = server.client();
    let space = Space {
        client: client.clone(),
        name: format!("archive-{}", new_id()),
    };
    let events = client.get("/v1/events?type=thread.destroyed");
    let mut events = events.bearer(API_SECRET).listen().await;
    let thread = client.thread();
    let state = r#"{"messages":[1.0,{"a":"b"}]}"#;
    thread.put("state", state).ok().await;
    thread.delete("").ok().await;

    // a subscriber or webhook receiver would handle each event like this
    let destroyed = events.next().await;
    let id = destroyed.about()["thread_id"].as_str().unwrap().to_owned();
    let archive = client.get(&format!("/v1/archives/{id}")).bearer(API_SECRET);
    let archive = archive.ok().await;
    let saved = space.put(&format!("{id}?ttl_seconds=0"), archive.body.clone());
    let saved = saved.header("content-type", "application/json");
    saved.header("if-none-match", "*").ok().await;

    assert_eq!(id, thread.id);
    let entry = space.get(&id).ok().await;
    assert_eq!(entry.header("content-type"), Some("application/json"));
    assert!(entry.text().ends_with(&format!(r#""state":{state}}}"#)));
    // saving again after a redelivered event changes nothing
    let again = space.put(&id, "x").header("if-none-match", "*");
    again.refused(412, "version_mismatch").await;
    assert_eq!(keys(&space, "prefix=thrd_").await.0, [id]);
}

super::over_both_stores!(
    keys_are_listed_page_by_page,
    a_cursor_is_valid_only_for_its_list,
    a_namespace_reports_its_entries_and_size,
    a_namespace_has_an_idle_ttl,
    a_namespace_has_a_default_ttl_for_its_entries,
    a_namespace_is_deleted_with_its_entries,
);
super::with_own_servers!(
    the_default_ttl_of_all_namespaces_is_a_setting,
    namespaces_are_listed_newest_first,
    a_cached_value_is_computed_once,
    a_listener_can_store_the_archive_of_an_ended_thread,
);
