mod models;
mod online;

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::*;
use threadkeep_domain::scope::ScopePolicies;

const SECRET: &str = "0123456789abcdef0123456789abcdef";

struct TempFile(PathBuf);

impl TempFile {
    fn new(test: &str, text: &str) -> Self {
        let name = format!("threadkeep-{}-{test}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, text).unwrap();
        Self(path)
    }

    fn as_str(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn layers(&self) -> Layers {
        Layers {
            file: Some(self.0.clone()),
            ..Layers::default()
        }
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

fn environment(variables: &[(&str, &str)]) -> Layers {
    let variables = variables.iter();
    Layers {
        environment: variables
            .map(|(name, text)| (format!("{PREFIX}{name}"), (*text).into()))
            .collect(),
        ..Layers::default()
    }
}

fn load(layers: &Layers) -> Result<Settings, SettingsError> {
    layers.merge().and_then(Settings::parse)
}

fn refusal(layers: &Layers) -> String {
    let error = load(layers).unwrap_err();
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text += &format!(": {error}");
        source = error.source();
    }
    text
}

#[test]
fn the_default_file_contains_the_defaults_and_every_entry_is_read() {
    let mut values = Layers::default().merge().unwrap();

    let provenance = values.provenance();
    let settings = Settings::read(&mut values, provenance).unwrap();

    assert!(values.names().is_empty(), "{:?}", values.names());
    assert_eq!(settings.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(settings.policy, threadkeep_domain::ThreadPolicy::THREAD);
    assert_eq!(settings.entries, threadkeep_domain::EntryPolicy::DEFAULT);
    assert_eq!(settings.scopes, ScopePolicies::DEFAULT);
    assert_eq!(
        settings.cookie,
        threadkeep_identity::CookieSettings::default()
    );
    assert_eq!(settings.store.timeout, Duration::from_secs(2));
    assert_eq!(settings.workers, None);
    assert_eq!(settings.cors, CorsOrigins::None);
    assert_eq!(settings.models, None);
    assert_eq!(settings.warnings, [Warning::RandomSigningKey]);
}

#[test]
fn flags_override_the_environment_which_overrides_the_file() {
    let file = TempFile::new("layers", "max_keys = 1\nkey_prefix = 'f'\nworkers = 3\n");
    let mut layers = environment(&[("MAX_KEYS", "2"), ("KEY_PREFIX", "e")]);
    layers.flags.insert("max_keys".into(), "4".into());
    layers.fallback_file = Some(file.0.clone());

    let values = layers.merge().unwrap();

    let report = values.provenance().to_string();
    let row = |name: &str| {
        let line = report.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("max_keys"), "max_keys 4 --max-keys");
    assert_eq!(row("key_prefix"), "key_prefix e THREADKEEP_KEY_PREFIX");
    assert_eq!(row("workers"), format!("workers 3 {}", file.as_str()));
    assert_eq!(row("log_format"), "log_format auto default");
    let settings = Settings::parse(values).unwrap();
    assert_eq!(settings.policy.max_keys, 4);
    assert_eq!(settings.store.key_prefix, "e");
}

#[test]
fn the_file_of_a_flag_replaces_all_other_files() {
    let strong = TempFile::new("strong", "max_keys = 1\n");
    let weak = TempFile::new("weak", "max_keys = 2\n");
    let mut layers = environment(&[("CONFIG", weak.as_str())]);

    assert_eq!(load(&layers).unwrap().policy.max_keys, 2);
    layers.file = Some(strong.0.clone());
    assert_eq!(load(&layers).unwrap().policy.max_keys, 1);
    layers.file = Some("/nowhere.toml".into());
    assert!(refusal(&layers).starts_with("the settings file /nowhere.toml: "));
}

#[test]
fn unknown_settings_are_rejected_in_every_layer() {
    let file = TempFile::new("unknown", "[database]\nlisten = 'x'\n");
    let mut in_flags = Layers::default();
    in_flags.flags.insert("max_key".into(), "1".into());

    assert_eq!(
        refusal(&environment(&[("LISTNE", "x")])),
        "unknown setting `listne` in THREADKEEP_LISTNE; did you mean `listen`?"
    );
    assert_eq!(
        refusal(&file.layers()),
        format!("unknown setting `database` in {}", file.as_str())
    );
    assert_eq!(
        refusal(&in_flags),
        "unknown setting `max_key` in --max-key; did you mean `max_keys`?"
    );
}

#[test]
fn a_file_may_contain_lists_as_arrays() {
    let text = "cors_origins = ['https://a.example', 'https://b.example']\n";
    let file = TempFile::new("arrays", text);

    let origins = load(&file.layers()).unwrap().cors.named().to_vec();

    assert_eq!(origins, ["https://a.example", "https://b.example"]);
}

#[test]
fn an_invalid_value_is_rejected_with_its_name_and_source() {
    for (name, text, expected) in [
        ("LISTEN", "localhost", "an address and a port"),
        ("WORKERS", "-1", "a number of threads"),
        ("THREAD_TTL_SECONDS", "0", "1 to"),
        ("MAX_KEYS", "0", "a number from 1"),
        ("KV_MAX_BYTES", "0", "1 to 16777216"),
        ("KV_MAX_BYTES", "16777217", "1 to 16777216"),
        ("KV_DEFAULT_TTL_SECONDS", "31536001", "0 to 31536000"),
        ("KEY_PREFIX", "a{b}", "1 to 32 of"),
        ("STORE_TIMEOUT_MS", "60001", "1 to 60000"),
        ("REDIS_URL", "localhost:6379", "redis://"),
        (
            "REDIS_URL",
            "redis+cluster://a,b/1",
            "a cluster has one database",
        ),
        ("COOKIE_SAME_SITE", "Lax", "lax, strict or none"),
        ("COOKIE_NAME", "__Host-a", "__Host-"),
        ("TRUSTED_PROXIES", "10.0.0.0/8,proxy", "`proxy`"),
        ("LOG", "threadkeep=loud", "`threadkeep=loud` is not"),
        ("LOG_FORMAT", "xml", "json or text"),
        ("IDENTITY", "none", "signed, header or jwt"),
        ("SIGNING_KEYS", SECRET, "key 1: it must be `name:secret`"),
        ("SIGNING_KEYS", "a b:x", "key 1: its name"),
        ("API_KEYS", "a:x,a:y", "key 2: its name is taken"),
        ("API_KEYS", "a:", "key 1: its secret is empty"),
    ] {
        let refusal = refusal(&environment(&[(name, text)]));

        let setting = name.to_ascii_lowercase();
        assert!(
            refusal.starts_with(&format!("the setting `{setting}` from THREADKEEP_{name}: ")),
            "{refusal}"
        );
        assert!(refusal.contains(expected), "{refusal}");
        assert!(!refusal.contains(SECRET));
    }
}

#[test]
fn only_loopback_addresses_allow_missing_or_short_signing_keys() {
    let listen = ("LISTEN", "0.0.0.0:8080");
    let strong = format!("a:{SECRET}");
    let warnings = |keys: &str| {
        let layers = environment(&[("SIGNING_KEYS", keys)]);
        load(&layers).unwrap().warnings
    };

    assert_eq!(warnings("a:short"), [Warning::ShortSigningKey("a".into())]);
    assert_eq!(warnings(&strong), []);
    assert!(
        refusal(&environment(&[listen])).contains("required unless `listen` is a loopback address")
    );
    assert!(refusal(&environment(&[listen, ("SIGNING_KEYS", "a:short")])).contains("32 bytes"));
    assert!(load(&environment(&[listen, ("SIGNING_KEYS", &strong)])).is_ok());
}

#[test]
fn only_loopback_addresses_allow_api_keys_under_16_bytes() {
    let strong = format!("a:{SECRET}");
    let signing = ("SIGNING_KEYS", strong.as_str());
    let api = |listen, keys| environment(&[("LISTEN", listen), signing, ("API_KEYS", keys)]);
    let (short, long) = ("a:0123456789abcdef,b:fedcba987654321", "b:fedcba9876543210");

    for loopback in [
        "127.0.0.1:80",
        "127.9.9.9:80",
        "[::1]:80",
        "[::ffff:127.0.0.1]:80",
    ] {
        assert_eq!(load(&api(loopback, short)).unwrap().warnings, []);
    }
    for open in [
        "0.0.0.0:80",
        "[::]:80",
        "192.0.2.1:80",
        "[::ffff:192.0.2.1]:80",
    ] {
        let message = refusal(&api(open, short));
        assert_eq!(
            message,
            "the setting `api_keys` from THREADKEEP_API_KEYS: key 2: its secret must have at least 16 \
             bytes unless `listen` is a loopback address"
        );
        assert_eq!(
            load(&api(open, long)).unwrap().warnings,
            [Warning::ShortApiKey("b".into())]
        );
        assert_eq!(load(&api(open, &strong)).unwrap().warnings, []);
    }
}

#[test]
fn the_variables_for_clients_are_not_settings() {
    let layers = environment(&[("URL", "http://there:1"), ("API_KEY", "a key")]);

    load(&layers).unwrap();
    let client = ClientSettings::parse(&layers).unwrap();

    assert_eq!(client.server, "http://there:1");
    assert_eq!(client.api_key.as_deref(), Some("a key"));
    let keys = format!("a:{SECRET}");
    let own = ClientSettings::parse(&environment(&[("API_KEYS", &keys)])).unwrap();
    assert_eq!(own.server, "http://127.0.0.1:8080");
    assert_eq!(own.api_key.as_deref(), Some(SECRET));
    let message = refusal(&environment(&[("API_KEYZ", "a")]));
    assert!(message.contains("api_keyz"), "{message}");
}

#[test]
fn rights_must_be_known_and_belong_to_existing_keys() {
    let with = |rights: &str| {
        let keys = format!("a:{SECRET},b:{SECRET}b");
        environment(&[("API_KEYS", &keys), ("API_KEY_RIGHTS", rights)])
    };

    let keys = load(&with("a:threads.read+kv/shop")).unwrap().api_keys;

    let rights = |secret: &str| keys.find(secret.as_bytes()).unwrap().rights.clone();
    assert_eq!(rights(SECRET), "threads.read+kv/shop".parse().unwrap());
    assert_eq!(rights(&format!("{SECRET}b")), "all".parse().unwrap());
    for (given, rule) in [
        (
            "c:kv",
            "key 1: it must be `name:right+right` with the name of an API key",
        ),
        ("a", "unknown right ``; allowed: all, threads"),
        ("a:", "unknown right ``; allowed: all, threads"),
        ("a:kv,b:kv+everything", "unknown right `everything`"),
        (
            "a:kv,a:events",
            "key 2: its name is taken by an earlier one",
        ),
    ] {
        let message = refusal(&with(given));
        assert!(message.contains("`api_key_rights`"), "{message}");
        assert!(message.contains(rule), "{message}");
    }
}

#[test]
fn an_invalid_cookie_is_reported_for_the_setting_that_causes_it() {
    for (set, name) in [
        (&[("COOKIE_SAME_SITE", "none")][..], "cookie_same_site"),
        (&[("COOKIE_PARTITIONED", "true")], "cookie_partitioned"),
        (&[("COOKIE_DOMAIN", "a b")], "cookie_domain"),
        (&[("COOKIE_NAME", "a b")], "cookie_name"),
        (&[("COOKIE_NAME", "__Secure-a")], "cookie_name"),
        (
            &[("COOKIE_SAME_SITE", "none"), ("COOKIE_SECURE", "never")],
            "cookie_same_site",
        ),
    ] {
        let message = refusal(&environment(set));

        let begin = format!(
            "the setting `{name}` from THREADKEEP_{}: ",
            name.to_ascii_uppercase()
        );
        assert!(message.starts_with(&begin), "{message}");
    }
    let message = refusal(&environment(&[("COOKIE_SAME_SITE", "none")]));
    assert!(message.contains("`cookie_secure` is always"), "{message}");
}

#[test]
fn secrets_come_from_a_file_or_a_setting_but_not_both() {
    let file = TempFile::new("keys", &format!("  new:{SECRET},old:{SECRET}\n"));
    let from_file = environment(&[("SIGNING_KEYS_FILE", file.as_str())]);
    let from_both = environment(&[
        ("SIGNING_KEYS_FILE", file.as_str()),
        ("SIGNING_KEYS", "a:b"),
    ]);

    let ring = load(&from_file).unwrap().signing_keys.unwrap();

    assert_eq!(ring.names().collect::<Vec<_>>(), ["new", "old"]);
    assert!(refusal(&from_both).contains("`signing_keys_file` is set too"));
}

#[test]
fn the_signing_key_is_one_of_the_keys() {
    let keys = format!("old:{SECRET},new:{SECRET}");
    let chosen = |name| environment(&[("SIGNING_KEYS", &keys), ("SIGNING_KEY", name)]);
    let index = |layers| load(&layers).unwrap().signing_keys.unwrap().chosen();

    assert_eq!(index(chosen("")), 0);
    assert_eq!(index(chosen("new")), 1);
    for unknown in ["newer", &format!("new:{SECRET}")] {
        let refusal = refusal(&chosen(unknown));
        assert!(refusal.contains("`signing_key`"), "{refusal}");
        assert!(!refusal.contains(SECRET), "{refusal}");
    }
    let alone = environment(&[("SIGNING_KEY", "new")]);
    assert!(refusal(&alone).contains("required as `signing_key` names one"));
}

#[test]
fn a_provider_requires_its_settings() {
    let header = ("IDENTITY", "header");
    let secret = ("IDENTITY_SECRET", SECRET);
    let proxies = ("TRUSTED_PROXIES", "10.0.0.1");
    let name = ("IDENTITY_HEADER", "x-user");
    let jwt = ("IDENTITY", "jwt");
    let file = TempFile::new("jwt", SECRET);
    let key = ("IDENTITY_JWT_KEY_FILE", file.as_str());
    let provider = |layers| load(&layers).unwrap().callers.provider;

    assert!(refusal(&environment(&[header, proxies, name])).contains("at least 32 bytes"));
    assert!(refusal(&environment(&[header, secret, name])).contains("`trusted_proxies` is empty"));
    assert!(refusal(&environment(&[header, secret, proxies])).contains("the name of a header"));
    assert!(
        refusal(&environment(&[jwt, secret])).contains("required as `identity` or `owner` is jwt")
    );
    assert!(provider(environment(&[header, secret, proxies, name])).is_some());
    assert!(provider(environment(&[jwt, secret, key])).is_some());
    assert!(provider(Layers::default()).is_none());
}

#[test]
fn owners_require_their_settings() {
    let header = ("OWNER", "header");
    let proxies = ("TRUSTED_PROXIES", "10.0.0.1");
    let name = ("IDENTITY_HEADER", "x-user");
    let jwt = ("OWNER", "jwt");
    let file = TempFile::new("jwt", SECRET);
    let key = ("IDENTITY_JWT_KEY_FILE", file.as_str());
    let required = ("OWNER_REQUIRED", "true");
    let callers = |layers| load(&layers).unwrap().callers;

    assert!(refusal(&environment(&[header, name])).contains("`trusted_proxies` is empty"));
    assert!(refusal(&environment(&[header, proxies])).contains("the name of a header"));
    assert!(refusal(&environment(&[jwt])).contains("required as `identity` or `owner` is jwt"));
    assert!(refusal(&environment(&[required])).contains("false, unless `owner` is header or jwt"));
    assert!(refusal(&environment(&[("OWNER", "signed")])).contains("none, header or jwt"));
    for layers in [&[header, proxies, name][..], &[jwt, key, required]] {
        let callers = callers(environment(layers));
        // no secret is needed, because the ids are still signed
        assert!(callers.owners.is_some() && callers.provider.is_none());
    }
    assert!(callers(Layers::default()).owners.is_none());
}

#[test]
fn reports_debug_output_and_errors_contain_no_secrets() {
    let mut layers = environment(&[
        ("SIGNING_KEYS", &format!("a:{SECRET}")),
        ("API_KEYS", &format!("b:{SECRET}")),
        ("IDENTITY_SECRET", SECRET),
    ]);
    let url = format!("redis+sentinel://user:{SECRET}@host/main?sentinel_password={SECRET}");
    layers.environment.insert(format!("{PREFIX}REDIS_URL"), url);
    let broken = TempFile::new("broken", &format!("api_keys = 'a:{SECRET}\n"));

    let values = layers.merge().unwrap();

    assert!(!values.provenance().to_string().contains(SECRET));
    assert!(!format!("{values:?}").contains(SECRET));
    assert!(!format!("{:?}", Settings::parse(values).unwrap()).contains(SECRET));
    assert!(!refusal(&broken.layers()).contains(SECRET));
}

#[test]
fn each_endpoint_requires_a_secret() {
    const ONE: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let both = format!("b:{ONE},a:{ONE}");
    let of = |webhooks: &str, secrets: &str, allow_private: &str| {
        environment(&[
            ("WEBHOOKS", webhooks),
            ("WEBHOOK_SECRETS", secrets),
            ("WEBHOOK_ALLOW_PRIVATE", allow_private),
        ])
    };
    let two = "a https://a.example/x thread.created thread.destroyed, b http://10.0.0.1 \
               session.completed";

    let settings = load(&of(two, &both, "true")).unwrap();

    assert!(settings.webhook_allow_private);
    let [a, b] = &settings.webhooks[..] else {
        panic!("{:?}", settings.webhooks)
    };
    assert_eq!(a.url.as_str(), "https://a.example/x");
    assert_eq!(a.types.iter().count(), 2);
    assert_eq!(b.secret().expose(), ONE);
    assert!(!format!("{settings:?}").contains(&ONE[6..20]));
    for (webhooks, secrets, expected) in [
        ("a", &*both, "1: it must be a name"),
        ("a https://a.example", &*both, "1: it must be a name"),
        ("a ftp://a.example thread.created", &*both, "its URL"),
        ("a https://a.example thread.read", &*both, "event type"),
        ("ä https://a.example thread.created", &*both, "its name"),
        (two, &*both, "2: its URL has a private address"),
        ("a https://a.example thread.created", "", "no secret"),
        ("a https://a.example thread.created", "a", "name:whsec_"),
        ("a https://a.example thread.created", "a:whsec_a", "base64"),
        ("a https://a.example thread.created", &*both, "no endpoint"),
    ] {
        let refusal = refusal(&of(webhooks, secrets, "false"));
        assert!(refusal.contains(expected), "{expected} in {refusal}");
        assert!(!refusal.contains("whsec_MfKQ"), "{refusal}");
    }
}

#[test]
fn scope_limits_are_read_from_settings() {
    let layers = environment(&[
        ("HISTORY_MAX_BYTES", "100"),
        ("HISTORY_DROP_OLDEST", "true"),
        ("SESSION_TTL_SECONDS", "5"),
        ("RUN_TTL_SECONDS", "7"),
        ("CONVERSATION_TTL_SECONDS", "60"),
    ]);

    let settings = load(&layers).unwrap();
    let scopes = settings.scopes;

    assert_eq!(scopes.history.max_bytes, 100);
    assert!(scopes.history.drops_oldest);
    assert_eq!(scopes.session_ttl, Duration::from_secs(5));
    assert_eq!(scopes.run_ttl, Duration::from_secs(7));
    assert_eq!(settings.conversation_ttl, Duration::from_secs(60));
    for (name, bad) in [
        ("HISTORY_MAX_BYTES", "0"),
        ("HISTORY_MAX_BYTES", "1073741825"),
        ("HISTORY_DROP_OLDEST", "yes"),
        ("SESSION_TTL_SECONDS", "0"),
        ("RUN_TTL_SECONDS", "-1"),
        ("CONVERSATION_TTL_SECONDS", "59"),
        ("CONVERSATION_TTL_SECONDS", "946080001"),
    ] {
        assert!(load(&environment(&[(name, bad)])).is_err(), "{name} {bad}");
    }
}

#[test]
fn a_rate_is_a_count_and_a_period_or_empty() {
    let set = environment(&[("RATE_WRITES", "60/1m burst 10"), ("RATE_NEW_THREADS", " ")]);
    let rates = load(&set).unwrap().rates;

    assert_eq!(rates.writes, Some("60/1m burst 10".parse().unwrap()));
    assert_eq!((rates.new_threads, rates.thread_writes), (None, None));
    assert!(!rates.are_off());
    assert!(load(&Layers::default()).unwrap().rates.are_off());
    for name in ["RATE_WRITES", "RATE_NEW_THREADS", "RATE_THREAD_WRITES"] {
        for text in ["60", "0/1m", "60/2d", "60/1m burst 61"] {
            let message = refusal(&environment(&[(name, text)]));
            assert!(message.contains(&format!("THREADKEEP_{name}")), "{message}");
            assert!(message.contains("such as 60/1m"), "{message}");
        }
    }
}

#[test]
fn invalid_log_filters_are_rejected() {
    for (text, wrong) in [
        ("warning", "warning"),
        ("inf", "inf"),
        ("info,verbose", "verbose"),
        ("thread", "thread"),
        ("6", "6"),
        ("info threadkeep=debug", "info threadkeep=debug"),
        ("info;threadkeep=debug", "info;threadkeep=debug"),
        ("threadkeep:debug", "threadkeep:debug"),
        ("thread::::keep=debug", "thread::::keep=debug"),
        ("info,threadkeep=verbose", "threadkeep=verbose"),
        ("threadkeep[span=debug", "threadkeep[span=debug"),
        ("[{a=(}]=debug", "[{a=(}]=debug"),
    ] {
        let message = refusal(&environment(&[("LOG", text)]));

        let begin = format!("the setting `log` from THREADKEEP_LOG: `{wrong}` is ");
        assert!(message.starts_with(&begin), "{message}");
        assert!(
            message.contains("off, error, warn, info, debug, trace"),
            "{message}"
        );
    }
    for nothing in ["", " ", ",", " , "] {
        let message = refusal(&environment(&[("LOG", nothing)]));
        assert!(message.contains("such as info"), "{message}");
    }
}

#[test]
fn valid_log_filters_are_accepted() {
    let filter = |text: &str| {
        let settings = load(&environment(&[("LOG", text)]));
        settings.map(|settings| settings.log.filter)
    };

    for text in [
        "off",
        "WARN",
        "3",
        "threadkeep",
        "actix_http",
        "hyper_util::client",
        "threadkeep_store_redis",
        "threadkeep::app=debug",
        "threadkeep=",
        "target-name=info",
        "other=off",
        "[span]",
        "[{field}]=trace",
        "threadkeep[span{field=\"value\"}]=debug",
        "[{field=1.5}]=info,warn",
    ] {
        assert_eq!(filter(text).unwrap(), text);
    }
    // white space would become part of a name
    assert_eq!(
        filter(" info , threadkeep=debug,, ").unwrap(),
        "info,threadkeep=debug"
    );
    let text = refusal(&environment(&[("LOG", "info,threadkeep::store=debug")]));
    assert!(text.contains("use threadkeep_store,"), "{text}");
}

#[test]
fn earlier_names_work_with_a_warning_and_current_names_take_precedence() {
    let file = TempFile::new(
        "renamed",
        "turn_max_steps = 4\nturns_max = 5\nresponses_max = 6\n",
    );
    let layers = Layers {
        environment: environment(&[
            ("TURN_LEASE_MS", "2000"),
            ("RESPONSE_WINDOW", "9"),
            ("UPSTREAMS", "a openai-chat http://a"),
            ("MODELS", "m a"),
            ("API_KEYS", &format!("k:{SECRET}")),
            ("SIGNING_KEYS", &format!("k:{SECRET}")),
        ])
        .environment,
        ..file.layers()
    };

    let settings = load(&layers).unwrap();

    let limits = settings.models.unwrap().limits;
    assert_eq!((limits.max_steps, limits.responses_max), (4, 6));
    assert_eq!(limits.lease, Duration::from_secs(2));
    let warnings: Vec<_> = settings.warnings.iter().map(ToString::to_string).collect();
    let renamed = |earlier, present| {
        format!("`{earlier}` is now called `{present}`; the next release rejects the earlier name")
    };
    assert_eq!(
        warnings,
        [
            renamed("response_window", "model_window_exchanges"),
            renamed("turn_lease_ms", "response_lease_ms"),
            renamed("turn_max_steps", "response_max_steps"),
            renamed("turns_max", "responses_max"),
        ]
    );
}
