use super::*;
use threadkeep_domain::ResponseLimits;

const UPSTREAMS: &str = "a openai-chat https://a.example/v1/, b.2 openai-chat http://10.0.0.1:8080";
const MODELS: &str = "fast a gpt-5-mini, llama3:8b b.2, gpt-* a, * b.2";

/// Returns settings with `variables`, and with an API key to prevent a warning.
fn with(variables: &[(&str, &str)]) -> Layers {
    let keys = format!("caller:{SECRET}");
    let mut layers = environment(&[("UPSTREAMS", UPSTREAMS), ("MODELS", MODELS)]);
    let others = environment(&[("API_KEYS", &keys)]).environment;
    layers.environment.extend(others);
    layers
        .environment
        .extend(environment(variables).environment);
    layers
}

fn models(variables: &[(&str, &str)]) -> ModelSettings {
    load(&with(variables)).unwrap().models.unwrap()
}

#[test]
fn models_and_upstreams_keep_the_configured_order() {
    let settings = models(&[("UPSTREAM_KEYS", "b.2:sk-1:2")]);

    let upstream = |name: &str, url: &str, key: Option<&str>| UpstreamSetting {
        name: name.into(),
        kind: UpstreamKind::OpenAiChat,
        url: url.into(),
        key: key.map(Into::into),
    };
    let model = |pattern: &str, upstream: &str, upstream_model: Option<&str>| ModelSetting {
        pattern: pattern.into(),
        upstream: upstream.into(),
        upstream_model: upstream_model.map(Into::into),
    };
    assert_eq!(
        settings.upstreams,
        [
            upstream("a", "https://a.example/v1", None),
            upstream("b.2", "http://10.0.0.1:8080", Some("sk-1:2")),
        ]
    );
    assert_eq!(
        settings.models,
        [
            model("fast", "a", Some("gpt-5-mini")),
            model("llama3:8b", "b.2", None),
            model("gpt-*", "a", None),
            model("*", "b.2", None),
        ]
    );
    assert_eq!(settings.upstream_timeout, Duration::from_secs(120));
    assert_eq!(settings.upstream_retries, 2);
    assert_eq!(settings.upstream_max_output_tokens, 4_096);
    assert_eq!(settings.limits, ResponseLimits::DEFAULT);
}

#[test]
fn each_kind_of_upstream_has_its_name() {
    let upstreams = "a openai-chat http://a,b openai-responses http://b,c anthropic http://c";

    let kinds = models(&[("UPSTREAMS", upstreams), ("MODELS", "* a")]).upstreams;

    let kinds: Vec<_> = kinds.into_iter().map(|upstream| upstream.kind).collect();
    let expected = [
        UpstreamKind::OpenAiChat,
        UpstreamKind::OpenAiResponses,
        UpstreamKind::Anthropic,
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn without_models_there_are_no_model_settings() {
    let keys = ("UPSTREAM_KEYS", "a:sk");

    for variables in [&[("MODELS", " ")][..], &[("MODELS", ","), keys]] {
        assert_eq!(load(&with(variables)).unwrap().models, None);
    }
    assert_eq!(load(&Layers::default()).unwrap().models, None);
    // the other settings are checked even without models
    assert!(load(&with(&[("MODELS", ""), ("RESPONSES_MAX", "0")])).is_err());
}

#[test]
fn models_without_an_api_key_are_a_warning() {
    let warnings = |variables: &[(&str, &str)]| load(&with(variables)).unwrap().warnings;
    let no_key = ("API_KEYS", "");

    assert_eq!(
        warnings(&[no_key]),
        [Warning::RandomSigningKey, Warning::ModelsWithoutApiKey]
    );
    assert_eq!(warnings(&[]), [Warning::RandomSigningKey]);
    assert_eq!(
        warnings(&[no_key, ("MODELS", "")]),
        [Warning::RandomSigningKey]
    );
}

#[test]
fn keys_of_upstreams_come_from_a_file_or_a_setting_but_not_both() {
    let file = TempFile::new("upstream-keys", "a:sk-a,\nb.2:sk-b\n");
    let from_file = ("UPSTREAM_KEYS_FILE", file.as_str());

    let keys = models(&[from_file]).upstreams.into_iter();

    let keys: Vec<_> = keys.filter_map(|upstream| upstream.key).collect();
    assert_eq!(keys, ["sk-a", "sk-b"]);
    let both = refusal(&with(&[from_file, ("UPSTREAM_KEYS", "a:b")]));
    assert!(both.contains("`upstream_keys_file` is set too"), "{both}");
    let missing = refusal(&with(&[("UPSTREAM_KEYS_FILE", "/nowhere")]));
    assert!(missing.contains("cannot read /nowhere"), "{missing}");
}

#[test]
fn a_file_may_begin_with_a_byte_order_mark_and_must_not_be_utf_16() {
    let marked = TempFile::new("marked-keys", "\u{feff}a:sk-a\r\n");
    let utf_16 = TempFile::new("utf-16-keys", "a\0:\0s\0");

    let keys = models(&[("UPSTREAM_KEYS_FILE", marked.as_str())]).upstreams;
    assert!(
        keys.into_iter()
            .any(|upstream| upstream.key.as_deref() == Some("sk-a"))
    );
    let refused = refusal(&with(&[("UPSTREAM_KEYS_FILE", utf_16.as_str())]));
    assert!(refused.contains("save it as UTF-8"), "{refused}");
}

#[test]
fn inconsistent_model_settings_are_rejected() {
    let long_name = format!("{} openai-chat http://a", "n".repeat(65));
    let long_model = format!("{} a", "n".repeat(129));
    for (name, text, expected) in [
        (
            "UPSTREAMS",
            "a openai-chat",
            "item 1: it must be a name, a kind and a URL",
        ),
        (
            "UPSTREAMS",
            "a openai-chat http://a b",
            "item 1: it must be a name, a kind and a URL",
        ),
        (
            "UPSTREAMS",
            "a/b openai-chat http://a",
            "item 1: its name must be 1 to 64",
        ),
        ("UPSTREAMS", &long_name, "item 1: its name must be 1 to 64"),
        (
            "UPSTREAMS",
            "a openai http://a",
            "item 1: its kind must be openai-chat, openai-responses or anthropic",
        ),
        (
            "UPSTREAMS",
            "a OpenAI-Chat http://a",
            "item 1: its kind must be openai-chat, openai-responses or anthropic",
        ),
        (
            "UPSTREAMS",
            "a openai-chat http://a,a openai-chat http://b",
            "item 2: its name is taken",
        ),
        ("MODELS", "m", "item 1: it must be a name, an upstream"),
        (
            "MODELS",
            "m a n o",
            "item 1: it must be a name, an upstream",
        ),
        (
            "MODELS",
            "m a,n c",
            "item 2: its upstream is not in `upstreams`",
        ),
        (
            "MODELS",
            "m A",
            "item 1: its upstream is not in `upstreams`",
        ),
        ("MODELS", "m a,n a,m b.2 o", "item 3: its name is taken"),
        ("MODELS", "g* a,g* b.2", "item 2: its name is taken"),
        ("MODELS", "g* a g", "item 1: its name ends in `*`"),
        ("MODELS", "g*t a", "item 1: `*` may only end its name"),
        ("MODELS", "** a", "item 1: `*` may only end its name"),
        (
            "MODELS",
            "g a g*",
            "item 1: its name at the upstream contains `*`",
        ),
        ("MODELS", "é a", "item 1: its names must be 1 to 128"),
        ("MODELS", "g a é", "item 1: its names must be 1 to 128"),
        ("MODELS", &long_model, "item 1: its names must be 1 to 128"),
        ("UPSTREAM_KEYS", "sk", "key 1: it must be `name:secret`"),
        (
            "UPSTREAM_KEYS",
            "a:sk,c:sk",
            "key 2: no upstream has its name",
        ),
        ("UPSTREAM_KEYS", "a:sk,a:sl", "key 2: its name is taken"),
        (
            "UPSTREAM_KEYS",
            "a:s k",
            "key 1: its secret must be visible ASCII",
        ),
    ] {
        let message = refusal(&with(&[(name, text)]));

        let setting = name.to_ascii_lowercase();
        let begin = format!("the setting `{setting}` from THREADKEEP_{name}: {expected}");
        assert!(message.starts_with(&begin), "{text}: {message}");
    }
}

#[test]
fn the_url_of_an_upstream_has_a_host_and_nothing_after_the_path() {
    for url in [
        "a.example",
        "ftp://a.example",
        "http://",
        "http:a.example",
        "http:\\\\a.example",
        "https://a.example/v1?",
        "https://a.example/v1?key=secret",
        "https://a.example/v1#",
        "https://a.example/\u{7f}",
    ] {
        let message = refusal(&with(&[("UPSTREAMS", &format!("a openai-chat {url}"))]));

        assert!(
            message.contains("item 1: its URL must be http or https"),
            "{url}: {message}"
        );
        assert!(!message.contains("secret"), "{message}");
    }
    for url in [
        "https://user@a.example",
        "https://:secret@a.example",
        "http:user:secret@a",
    ] {
        let message = refusal(&with(&[("UPSTREAMS", &format!("a openai-chat {url}"))]));

        assert!(
            message.contains("set its key in `upstream_keys` instead"),
            "{url}: {message}"
        );
        assert!(!message.contains("secret@"), "{message}");
    }
    for (url, expected) in [
        ("https://a.example/", "https://a.example"),
        ("http://[::1]:8080/v1//", "http://[::1]:8080/v1/"),
        ("http://localhost:11434/v1", "http://localhost:11434/v1"),
    ] {
        let upstreams = format!("a openai-chat {url}");
        let settings = models(&[("UPSTREAMS", &upstreams), ("MODELS", "m a")]);
        assert_eq!(settings.upstreams[0].url, expected);
    }
}

#[test]
fn numeric_model_settings_have_bounds() {
    for (name, min, max) in [
        ("UPSTREAM_TIMEOUT_MS", 100, 3_600_000),
        ("UPSTREAM_RETRIES", 0, 10),
        ("UPSTREAM_MAX_OUTPUT_TOKENS", 1, 1_000_000),
        ("RESPONSE_MAX_STEPS", 1, 1_000),
        ("RESPONSE_MAX_TOOL_CALLS", 1, 10_000),
        ("RESPONSE_MAX_SECONDS", 1, 86_400),
        ("RESPONSE_MAX_BYTES", 1_024, 8_388_608),
        ("RESPONSES_MAX", 1, 65_536),
        ("RESPONSE_LEASE_MS", 1_000, 600_000),
        ("RESPONSE_RESUME_SECONDS", 1, 86_400),
        ("MODEL_WINDOW_EXCHANGES", 0, 10_000),
        ("RESPONSE_TTL_SECONDS", 60, 946_080_000),
    ] {
        let with = |number: i64| with(&[(name, &number.to_string())]);

        assert!(load(&with(min)).is_ok() && load(&with(max)).is_ok());
        for outside in [min - 1, max + 1] {
            let message = refusal(&with(outside));
            let expected = format!("THREADKEEP_{name}: it must be a number of ");
            assert!(message.contains(&expected), "{message}");
            assert!(message.ends_with(&format!("{min} to {max}")), "{message}");
        }
    }
}

#[test]
fn each_numeric_model_setting_sets_its_limit() {
    let settings = models(&[
        ("UPSTREAM_TIMEOUT_MS", "101"),
        ("UPSTREAM_RETRIES", "3"),
        ("UPSTREAM_MAX_OUTPUT_TOKENS", "102"),
        ("RESPONSE_MAX_STEPS", "4"),
        ("RESPONSE_MAX_TOOL_CALLS", "5"),
        ("RESPONSE_MAX_SECONDS", "6"),
        ("RESPONSE_MAX_BYTES", "1025"),
        ("RESPONSES_MAX", "7"),
        ("RESPONSE_LEASE_MS", "1001"),
        ("RESPONSE_RESUME_SECONDS", "8"),
        ("MODEL_WINDOW_EXCHANGES", "9"),
        ("RESPONSE_TTL_SECONDS", "61"),
    ]);

    assert_eq!(settings.upstream_timeout, Duration::from_millis(101));
    assert_eq!(settings.upstream_retries, 3);
    assert_eq!(settings.upstream_max_output_tokens, 102);
    assert_eq!(
        settings.limits,
        ResponseLimits {
            max_steps: 4,
            max_tool_calls: 5,
            max_time: Duration::from_secs(6),
            max_bytes: 1_025,
            responses_max: 7,
            lease: Duration::from_millis(1_001),
            resume: Duration::from_secs(8),
            window: 9,
            response_ttl: Duration::from_secs(61),
        }
    );
}

#[test]
fn reports_and_debug_output_omit_keys_and_paths_of_upstreams() {
    let upstreams = format!("a openai-chat https://a.example/{SECRET}");
    let keys = format!("a:{SECRET}");
    let layers = with(&[
        ("UPSTREAMS", &upstreams),
        ("UPSTREAM_KEYS", &keys),
        ("MODELS", "m a"),
    ]);

    let values = layers.merge().unwrap();

    let report = values.provenance().to_string();
    assert!(
        report.contains(" a openai-chat https://a.example/*** "),
        "{report}"
    );
    assert!(report.contains(" a:*** "), "{report}");
    assert!(!report.contains(SECRET));
    let settings = Settings::parse(values).unwrap();
    assert!(!format!("{settings:?}").contains(SECRET));
    let password = format!("a openai-chat https://user:{SECRET}@a.example");
    let refused = with(&[("UPSTREAMS", &password)]);
    assert!(
        !refused
            .merge()
            .unwrap()
            .provenance()
            .to_string()
            .contains(SECRET)
    );
    assert!(!refusal(&refused).contains(SECRET));
}
