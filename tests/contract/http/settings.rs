use serde_json::Value;

use crate::support::server::{API_SECRET, Backend, Server};

async fn all_settings_are_listed_with_their_sources_and_without_secrets(backend: Backend) {
    let server = Server::builder(backend)
        .set("THREADKEEP_MAX_KEYS", 77)
        .set(
            "THREADKEEP_IDENTITY_SECRET",
            "a-secret-to-hide-of-the-identity-provider",
        )
        .start();
    let request = server.client().get("/v1/settings").bearer(API_SECRET);

    let answer = request.ok().await;

    let text = answer.text();
    let list = answer.json();
    let list = list["settings"].as_array().unwrap();
    let names = list.iter().map(|setting| setting["name"].as_str().unwrap());
    let page = include_str!("../../../docs/settings.md");
    let documented = page.lines().filter_map(|line| line.strip_prefix("### `"));
    assert!(names.eq(documented.map(|name| name.trim_end_matches('`'))));
    let find = |name: &str| -> &Value {
        let mut found = list.iter().filter(|setting| setting["name"] == name);
        found.next().unwrap()
    };
    let max_keys = find("max_keys");
    assert_eq!(max_keys["value"], "77");
    assert_eq!(max_keys["default"], "10000");
    assert_eq!(max_keys["source"], "THREADKEEP_MAX_KEYS");
    assert!(max_keys["help"].as_str().unwrap().ends_with('.'));
    assert_eq!(find("thread_max_age_seconds")["source"], "default");
    assert_eq!(find("identity_secret")["value"], "***");
    assert!(find("api_keys")["value"].as_str().unwrap().contains(":***"));
    for secret in [API_SECRET, "a-secret-to-hide"] {
        assert!(!text.contains(secret), "{text}");
    }
}

with_own_servers!(all_settings_are_listed_with_their_sources_and_without_secrets);
