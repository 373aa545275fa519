use reqwest::Method;
use serde_json::json;

use super::{Kv, ask, refused};
use crate::http::over_both_stores;
use crate::support::server::Server;

async fn paths_are_split_before_names_are_decoded(server: &Server) {
    let base = Kv::new(server).name;
    for name in [
        format!("{base}/a"),
        format!("{base}%2F"),
        format!("é\"{base}"),
    ] {
        let kv = Kv::named(server, &name);
        let keys = [
            " ",
            "%2F",
            "?#&=",
            "a b",
            "a%2Fb",
            "a+b",
            "a/b",
            "stats",
            "ä\u{301}",
            "😀",
        ];
        for key in keys {
            kv.set(key, format!("{name} {key}")).ok().await;
        }
        for key in keys {
            let value = kv.get(key).ok().await;
            assert_eq!(value.text(), format!("{name} {key}"));
        }

        assert_eq!(kv.list("keys").ok().await.json(), json!(keys));
        assert_eq!(kv.list("stats").ok().await.json()["count"], keys.len());
        let found = kv.search("/").ok().await.json();
        assert_eq!(found.as_object().unwrap().len(), 1);
        assert_eq!(kv.namespace(Method::DELETE).send().await.status, 204);
        assert_eq!(kv.list("keys").ok().await.json(), json!([]));
    }
}

async fn invalid_names_change_nothing(server: &Server) {
    let kv = Kv::new(server);
    kv.set("k", "kept").ok().await;
    for name in ["", "%20", "a%0Ab", "%FF", "%zz", "%", &"n".repeat(65)] {
        for (method, path) in [
            (Method::GET, format!("/kv/{name}/k")),
            (Method::PUT, format!("/kv/{name}/k")),
            (Method::DELETE, format!("/kv/{name}/k")),
            (Method::PUT, format!("/kv/{name}/k/60")),
            (Method::POST, format!("/kv/{name}")),
            (Method::DELETE, format!("/kv/{name}")),
            (Method::GET, format!("/kv/keys/{name}")),
            (Method::GET, format!("/kv/stats/{name}")),
            (Method::GET, format!("/kv/search/{name}/x")),
        ] {
            let text = refused(ask(&kv.client, method, &path), 400).await;
            assert!(text.contains("namespace"), "{path}: {text}");
        }
    }
    // the path for the key "." or "" becomes `/kv/{namespace}/`, which must not delete the namespace
    for key in ["", "%FF", "%0A", "%", "%zz", "%7F", &"k".repeat(1_025)] {
        for method in [Method::GET, Method::PUT, Method::DELETE] {
            let path = format!("/kv/{}/{key}", kv.name);
            let text = refused(ask(&kv.client, method, &path), 400).await;
            assert!(text.contains("key"), "{path}: {text}");
        }
    }
    assert_eq!(kv.list("keys").ok().await.json(), json!(["k"]));
    assert_eq!(kv.get("k").ok().await.text(), "kept");
}

async fn route_words_are_valid_namespaces(server: &Server) {
    for name in ["search", "namespaces"] {
        let kv = Kv::named(server, name);
        kv.namespace(Method::POST).ok().await;
        kv.set_with_ttl("k", "60", name).ok().await;

        assert_eq!(kv.get("k").ok().await.text(), name);
        assert_eq!(kv.list("keys").ok().await.json(), json!(["k"]));
        assert_eq!(kv.list("stats").ok().await.json()["count"], 1);
        assert!(kv.search("k").ok().await.json()["k"].is_object());
        kv.delete("k").ok().await;
        refused(kv.get("k"), 404).await;
        kv.namespace(Method::DELETE).ok().await;
    }
}

async fn entries_of_namespaces_named_like_lists_are_found_by_search(server: &Server) {
    let other = Kv::new(server);
    other.set("k", "x").ok().await;
    for name in ["keys", "stats"] {
        let kv = Kv::named(server, name);
        kv.namespace(Method::POST).ok().await;
        kv.set(&other.name, "of another").ok().await;

        let listed = kv.get(&other.name).ok().await.json();

        match name {
            "keys" => assert_eq!(listed, json!(["k"])),
            _ => assert_eq!(listed["count"], 1),
        }
        let keys = kv.list("keys").ok().await.json();
        assert_eq!(keys, json!([other.name]));
        let found = kv.search("thrd_").ok().await.json();
        assert_eq!(found[&other.name]["size"], 10);
        let value = kv.at_v1(Method::GET, &other.name).ok().await;
        assert_eq!(value.text(), "of another");
        kv.delete(&other.name).ok().await;
        kv.namespace(Method::DELETE).ok().await;
    }
    assert_eq!(other.get("k").ok().await.text(), "x");
}

async fn the_path_of_older_clients_reaches_the_same_values(server: &Server) {
    let kv = Kv::new(server);
    let old = kv.at_old_path();

    old.namespace(Method::POST).ok().await;
    old.set("k", "old").ok().await;
    old.set_with_ttl("short", "60", "old").ok().await;

    assert_eq!(kv.get("k").ok().await.text(), "old");
    assert_eq!(old.get("k").ok().await.text(), "old");
    let short = kv.get("short").ok().await;
    let old_short = old.get("short").ok().await;
    assert_eq!(
        short.header("x-expires-at"),
        old_short.header("x-expires-at")
    );
    assert_eq!(old.list("keys").ok().await.json(), json!(["k", "short"]));
    assert_eq!(old.list("stats").ok().await.json()["count"], 2);
    assert!(old.search("s").ok().await.json()["short"].is_object());
    let names = old.ask(Method::GET, "/namespaces").ok().await.json();
    let names = names.as_array().unwrap();
    assert!(names.contains(&json!(kv.name)));
    let query = format!("/stats?name={}", kv.name);
    let stats = old.ask(Method::GET, &query).ok().await.json();
    assert_eq!(stats["namespaces"][&kv.name]["count"], 2);
    let all = old.ask(Method::GET, "/stats").ok().await.json();
    assert!(all.is_object());
    old.delete("k").ok().await;
    refused(kv.get("k"), 404).await;
    old.namespace(Method::DELETE).ok().await;
    assert_eq!(kv.list("keys").ok().await.json(), json!([]));
}

async fn a_namespace_named_like_the_old_path_is_not_misread(server: &Server) {
    let kv = Kv::named(server, "2025-03-17");
    kv.namespace(Method::POST).ok().await;
    let value = kv.at_v1(Method::PUT, "k").body("x");
    value.ok().await;

    for request in [kv.get("k"), kv.set("k", "y")] {
        refused(request, 405).await;
    }

    assert_eq!(kv.list("keys").ok().await.json(), json!(["k"]));
    kv.namespace(Method::DELETE).ok().await;
    assert_eq!(kv.list("keys").ok().await.json(), json!([]));
}

over_both_stores!(
    paths_are_split_before_names_are_decoded,
    invalid_names_change_nothing,
    route_words_are_valid_namespaces,
    entries_of_namespaces_named_like_lists_are_found_by_search,
    the_path_of_older_clients_reaches_the_same_values,
    a_namespace_named_like_the_old_path_is_not_misread,
);
