use super::*;
use threadkeep_online::SearchKind;

const MODELS: [(&str, &str); 2] = [
    ("UPSTREAMS", "a openai-chat https://a.example/v1"),
    ("MODELS", "m a"),
];

/// Returns settings with `variables` and a model, and with an API key to prevent a warning.
fn with(variables: &[(&str, &str)]) -> Layers {
    let keys = format!("caller:{SECRET}");
    let mut layers = environment(&[("API_KEYS", &keys)]);
    for others in [&MODELS, variables] {
        layers.environment.extend(environment(others).environment);
    }
    layers
}

fn online(variables: &[(&str, &str)]) -> OnlineSettings {
    load(&with(variables)).unwrap().models.unwrap().online
}

#[test]
fn without_settings_there_are_no_tools() {
    assert_eq!(online(&[]), OnlineSettings::default());
}

#[test]
fn each_tool_has_its_settings() {
    let settings = online(&[
        ("WEB_SEARCH", "brave https://api.search.brave.com/"),
        ("WEB_SEARCH_KEY", "bsa-1"),
        ("WEB_FETCH", "true"),
        ("WEB_FETCH_PRIVATE_HOSTS", "wiki.internal:80, 10.0.0.1:8080"),
        ("IMAGES", "a gpt-image-1"),
    ]);

    let search = settings.search.unwrap();
    assert_eq!(search.kind, SearchKind::Brave);
    assert_eq!(search.key, Some("bsa-1".parse().unwrap()));
    let fetch = settings.fetch.unwrap();
    assert_eq!(fetch.private_hosts.len(), 2);
    assert_eq!(fetch.max_bytes, 2_097_152);
    assert_eq!(fetch.timeout, Duration::from_secs(10));
    let images = settings.images.unwrap();
    assert_eq!((&*images.upstream, &*images.model), ("a", "gpt-image-1"));

    let searxng = online(&[("WEB_SEARCH", "searxng http://10.0.0.1:8080")]);
    assert_eq!(searxng.search.unwrap().key, None);
}

#[test]
fn inconsistent_settings_are_rejected() {
    let brave = ("WEB_SEARCH", "brave https://b.example");
    for (variables, name) in [
        (vec![brave], "web_search_key"),
        (vec![("WEB_SEARCH_KEY", "k")], "web_search"),
        (
            vec![
                ("WEB_SEARCH", "searxng https://s.example"),
                ("WEB_SEARCH_KEY", "k"),
            ],
            "web_search_key",
        ),
        (vec![brave, ("WEB_SEARCH_KEY", "a b")], "web_search_key"),
        (vec![("WEB_SEARCH", "bing https://b.example")], "web_search"),
        (vec![("WEB_SEARCH", "searxng")], "web_search"),
        (
            vec![("WEB_SEARCH", "searxng https://u:p@s.example")],
            "web_search",
        ),
        (
            vec![("WEB_SEARCH", "searxng https://s.example?a")],
            "web_search",
        ),
        (vec![("WEB_FETCH", "yes")], "web_fetch"),
        (
            vec![("WEB_FETCH_PRIVATE_HOSTS", "wiki.internal:80")],
            "web_fetch_private_hosts",
        ),
        (
            vec![
                ("WEB_FETCH", "true"),
                ("WEB_FETCH_PRIVATE_HOSTS", "a:80,wiki.internal"),
            ],
            "web_fetch_private_hosts",
        ),
        (vec![("WEB_FETCH_MAX_BYTES", "1023")], "web_fetch_max_bytes"),
        (vec![("WEB_FETCH_TIMEOUT_MS", "99")], "web_fetch_timeout_ms"),
        (vec![("IMAGES", "b gpt-image-1")], "images"),
        (vec![("IMAGES", "a")], "images"),
    ] {
        match load(&with(&variables)) {
            Err(SettingsError::Invalid { name: refused, .. }) => assert_eq!(refused, name),
            other => panic!("{variables:?}: {other:?}"),
        }
    }
}

#[test]
fn the_key_of_the_search_is_not_shown() {
    let layers = with(&[
        ("WEB_SEARCH", "tavily https://user.example/secret-path"),
        ("WEB_SEARCH_KEY", "secret-key"),
    ]);

    let settings = load(&layers).unwrap();
    let shown = layers.merge().unwrap().provenance().to_string();

    for text in [format!("{settings:?}"), shown] {
        assert!(!text.contains("secret-"), "{text}");
    }
}
