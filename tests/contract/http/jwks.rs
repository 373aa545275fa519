use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::providers::{SECRET, file, openssl};
use crate::support::client::{Answer, Request};
use crate::support::server::{Backend, Builder, Server};
use crate::support::until;

const FETCH_INTERVAL: Duration = Duration::from_secs(5);
const FETCHES: &str = r#"threadkeep_jwks_fetches_total{outcome="ok"}"#;
const FAILURES: &str = r#"threadkeep_jwks_fetches_total{outcome="failed"}"#;

pub(super) struct Issuer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    /// The answer to each fetch. `None` leaves fetches without an answer.
    answer: Option<Vec<u8>>,
    fetches: usize,
    /// Open connections on which the issuer does not answer.
    hung: Vec<TcpStream>,
}

struct Key {
    id: &'static str,
    private: EncodingKey,
    public: Vec<u8>,
}

impl Issuer {
    pub(super) fn start(answer: Option<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State {
            answer,
            fetches: 0,
            hung: Vec::new(),
        }));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4_096]);
                let mut state = shared.lock().unwrap();
                state.fetches += 1;
                match state.answer.clone() {
                    // the write fails if the client has read enough and closed the connection
                    Some(answer) => drop(stream.write_all(&answer)),
                    None => state.hung.push(stream),
                }
            }
        });
        Self { address, state }
    }

    fn with_keys(keys: &[&Key]) -> Self {
        Self::start(Some(key_set(keys)))
    }

    fn set_answer(&self, answer: Option<Vec<u8>>) {
        self.state.lock().unwrap().answer = answer;
    }

    fn fetches(&self) -> usize {
        self.state.lock().unwrap().fetches
    }

    pub(super) fn builder(&self) -> Builder {
        Server::builder(Backend::Memory)
            .set("THREADKEEP_IDENTITY", "jwt")
            .set("THREADKEEP_IDENTITY_SECRET", SECRET)
            .set(
                "THREADKEEP_IDENTITY_JWT_JWKS_URL",
                format_args!("http://{}/jwks", self.address),
            )
    }
}

impl Key {
    fn new(test: &str, id: &'static str) -> Self {
        let path = |end| file(&format!("jwks-{test}-{id}.{end}"), "");
        let (private, public): (PathBuf, PathBuf) = (path("pem"), path("der"));
        openssl(
            &["genpkey", "-algorithm", "ed25519", "-out"],
            &private,
            None,
        );
        openssl(
            &["pkey", "-pubout", "-outform", "DER", "-in"],
            &private,
            Some(&public),
        );
        let der = std::fs::read(&public).unwrap();
        Self {
            id,
            private: EncodingKey::from_ed_pem(&std::fs::read(&private).unwrap()).unwrap(),
            // the key is the last 32 bytes of the structure (RFC 8410, section 4)
            public: der[der.len() - 32..].to_vec(),
        }
    }

    fn jwk(&self) -> Value {
        let x = URL_SAFE_NO_PAD.encode(&self.public);
        json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": self.id, "use": "sig"})
    }

    fn token(&self, id: Option<&str>) -> String {
        sign(Algorithm::EdDSA, &self.private, id)
    }
}

pub(super) fn sign(algorithm: Algorithm, key: &EncodingKey, id: Option<&str>) -> String {
    let header = Header {
        kid: id.map(Into::into),
        ..Header::new(algorithm)
    };
    let claims = json!({"sub": "ada", "exp": get_current_timestamp() + 300});
    encode(&header, &claims, key).unwrap()
}

pub(super) fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n");
    [head.as_bytes(), body.as_bytes()].concat()
}

fn key_set(keys: &[&Key]) -> Vec<u8> {
    let keys: Vec<_> = keys.iter().map(|key| key.jwk()).collect();
    answer("200 OK", "", &json!({"keys": keys}).to_string())
}

fn read_state(server: &Server, token: &str) -> Request {
    let client = server.client();
    client.get("/v1/threads/current/state").bearer(token)
}

pub(super) async fn is_accepted(server: &Server, token: &str) -> bool {
    let answer: Answer = read_state(server, token).send().await;
    if answer.status != 200 {
        answer.problem(401, "unknown_caller");
    }
    answer.status == 200
}

/// Retries until the server has fetched keys, because a request waits only two seconds for the first fetch.
pub(super) async fn await_keys(server: &Server, token: &str) {
    until(async || read_state(server, token).send().await.status == 200).await;
}

#[tokio::test]
async fn keys_are_fetched_again_only_when_a_token_names_a_new_one() {
    let (old, new) = (Key::new("rotation", "old"), Key::new("rotation", "new"));
    let issuer = Issuer::with_keys(&[&old]);
    let server = issuer.builder().start();
    let (by_old, by_new) = (old.token(Some("old")), new.token(Some("new")));

    // the first request waits for the first fetch
    await_keys(&server, &by_old).await;
    let fetches = issuer.fetches();
    for _ in 0..10 {
        read_state(&server, &by_old).ok().await;
    }
    assert_eq!(issuer.fetches(), fetches);
    assert!(!is_accepted(&server, &by_new).await);

    issuer.set_answer(Some(key_set(&[&old, &new])));
    until(async || is_accepted(&server, &by_new).await).await;
    read_state(&server, &by_old).ok().await;

    issuer.set_answer(Some(key_set(&[&new])));
    let unknown = new.token(Some("strange"));
    until(async || {
        assert!(!is_accepted(&server, &unknown).await);
        !is_accepted(&server, &by_old).await
    })
    .await;
    read_state(&server, &by_new).ok().await;
    assert_eq!(server.metric("threadkeep_jwks_keys").await, 1);
    // the issuer also counts fetches that timed out, which the server counts as failures
    let counted = async || server.metric(FETCHES).await + server.metric(FAILURES).await;
    until(async || counted().await == issuer.fetches() as u64).await;
}

#[tokio::test]
async fn unknown_key_ids_cause_one_fetch_in_five_seconds() {
    let key = Key::new("strange", "a");
    let issuer = Issuer::with_keys(&[&key]);
    let server = issuer.builder().start();
    await_keys(&server, &key.token(Some("a"))).await;
    let (start, before) = (Instant::now(), issuer.fetches());

    let mut sent = 0;
    while start.elapsed() < FETCH_INTERVAL + FETCH_INTERVAL / 5 || sent <= 100 {
        let tokens = (0..20).map(|number| key.token(Some(&format!("{sent}-{number}"))));
        let server = &server;
        let answers = tokens.map(|token| async move { is_accepted(server, &token).await });
        assert!(!join_all(answers).await.contains(&true));
        sent += 20;
    }

    let fetches_max = 1 + start.elapsed().as_secs() / FETCH_INTERVAL.as_secs();
    let fetches = issuer.fetches() - before;
    assert!(fetches as u64 <= fetches_max, "{fetches} for {sent}");
}

#[tokio::test]
async fn the_last_valid_keys_apply_while_the_issuer_fails() {
    let key = Arc::new(Key::new("lies", "a"));
    let elsewhere = Issuer::with_keys(&[&key]);
    let location = format!("location: http://{}/\r\n", elsewhere.address);
    let huge = format!(r#"{{"keys":[],"more":"{}"}}"#, "x".repeat(300_000));
    let bad_answers = [
        None,
        Some(answer("500 Internal Server Error", "", "")),
        Some(answer("302 Found", &location, "")),
        Some(answer("200 OK", "", &huge)),
        Some(answer("200 OK", "", "<html>")),
        Some(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{".to_vec()),
        Some(b"nonsense\r\n\r\n".to_vec()),
    ];

    let checks = bad_answers.into_iter().map(|bad_answer| {
        let key = Arc::clone(&key);
        async move {
            let issuer = Issuer::with_keys(&[&key]);
            let server = issuer.builder().set("THREADKEEP_WORKERS", 1).start();
            let (good, unknown) = (key.token(Some("a")), key.token(Some("strange")));
            await_keys(&server, &good).await;
            issuer.set_answer(bad_answer);

            until(async || {
                assert!(!is_accepted(&server, &unknown).await);
                assert!(is_accepted(&server, &good).await);
                server.metric(FAILURES).await > 0
            })
            .await;

            read_state(&server, &good).ok().await;
            server.await_log(|line| line.contains("WARN") && line.contains("last good"));
        }
    });
    join_all(checks).await;

    assert_eq!(elsewhere.fetches(), 0);
}

#[tokio::test]
async fn an_issuer_that_withdraws_all_keys_revokes_every_token() {
    let key = Key::new("withdrawn", "a");
    let issuer = Issuer::with_keys(&[&key]);
    let server = issuer.builder().start();
    let (good, unknown) = (key.token(Some("a")), key.token(Some("strange")));
    await_keys(&server, &good).await;
    let failures = server.metric(FAILURES).await;

    issuer.set_answer(Some(key_set(&[])));

    until(async || {
        assert!(!is_accepted(&server, &unknown).await);
        !is_accepted(&server, &good).await
    })
    .await;
    server.await_log(|line| line.contains("WARN") && line.contains("every token is rejected"));
    assert_eq!(server.metric("threadkeep_jwks_keys").await, 0);
    // a fetch that timed out because the machine paused is already included in `failures`
    assert_eq!(server.metric(FAILURES).await, failures);

    issuer.set_answer(Some(key_set(&[&key])));
    until(async || is_accepted(&server, &good).await).await;
}

#[tokio::test]
async fn a_request_with_an_invalid_head_waits_for_no_key() {
    let key = Key::new("head", "a");
    let issuer = Issuer::start(None);
    let server = issuer.builder().start();
    until(async || issuer.fetches() > 0).await;
    let path = format!("/v1/threads/current/state?{}", "x".repeat(20_000));

    let mut times = Vec::new();
    // retry: waiting for a key takes two seconds every time, but a pause of the machine delays only some requests
    for _ in 0..20 {
        let start = Instant::now();
        let refused = server.client().get(&path).bearer(&key.token(Some("a")));
        let refused = refused.send().await;

        refused.problem(414, "url_too_long");
        times.push(start.elapsed());
        if start.elapsed() < Duration::from_secs(1) {
            return;
        }
    }
    panic!("{times:?}");
}

#[tokio::test]
async fn callers_are_asked_to_retry_before_the_first_keys_arrive() {
    let key = Key::new("first", "a");
    let issuer = Issuer::start(None);
    let server = issuer.builder().start();

    let refused = read_state(&server, &key.token(Some("a"))).send();
    // the server waits much less than 60 s for a fetch
    let refused = timeout(Duration::from_secs(60), refused).await.unwrap();

    refused.problem(503, "identity_unavailable");
    assert_eq!(refused.header("retry-after"), Some("1"));
    server.client().get("/healthz").ok().await;
    let without_token = server.client().get("/v1/threads/current/state");
    without_token.refused(401, "unknown_caller").await;
}

#[tokio::test]
async fn a_public_key_is_never_used_as_a_shared_secret() {
    let key = Key::new("confusion", "a");
    let issuer = Issuer::with_keys(&[&key]);
    let server = issuer.builder().start();
    await_keys(&server, &key.token(Some("a"))).await;
    let fetches = issuer.fetches();
    let jwk = key.jwk();
    let text = jwk.to_string();

    for secret in [
        &key.public[..],
        jwk["x"].as_str().unwrap().as_bytes(),
        text.as_bytes(),
    ] {
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            for id in [Some("a"), None] {
                let forged = sign(algorithm, &EncodingKey::from_secret(secret), id);
                assert!(!is_accepted(&server, &forged).await);
            }
        }
    }
    let unsigned = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","kid":"a"}"#);
    let claims = key.token(Some("a")).split('.').nth(1).unwrap().to_owned();
    assert!(!is_accepted(&server, &format!("{unsigned}.{claims}.")).await);
    // a forged token causes no fetch
    assert_eq!(issuer.fetches(), fetches);
}

#[tokio::test]
async fn a_key_without_an_id_verifies_only_tokens_without_a_key_id() {
    let (named, nameless) = (Key::new("kid", "named"), Key::new("kid", "nameless"));
    let mut jwk = nameless.jwk();
    jwk.as_object_mut().unwrap().remove("kid");
    let body = json!({"keys": [named.jwk(), {"kty": "later"}, jwk]}).to_string();
    let issuer = Issuer::start(Some(answer("200 OK", "", &body)));
    let server = issuer.builder().start();
    await_keys(&server, &named.token(Some("named"))).await;

    for token in [
        named.token(Some("named")),
        named.token(None),
        nameless.token(None),
    ] {
        read_state(&server, &token).ok().await;
    }
    let wrong = [
        nameless.token(Some("named")),
        named.token(Some("nameless")),
        nameless.token(Some("nameless")),
    ];
    for token in wrong {
        assert!(!is_accepted(&server, &token).await);
    }
}

#[test]
fn conflicting_key_settings_are_refused() {
    let base = Server::builder(Backend::Memory)
        .set("THREADKEEP_IDENTITY", "jwt")
        .set("THREADKEEP_IDENTITY_SECRET", SECRET);
    let url = "THREADKEEP_IDENTITY_JWT_JWKS_URL";
    let key_file = file("jwks-and-key", "a-shared-secret-of-at-least-32-bytes");
    let both = base
        .clone()
        .set(url, "https://issuer.example/jwks")
        .set("THREADKEEP_IDENTITY_JWT_KEY_FILE", key_file.display());

    for (builder, word) in [
        (base.clone(), "identity_jwt_jwks_url"),
        (both, "`identity_jwt_key_file` is set too"),
        (base.set(url, "http://issuer.example/jwks"), "loopback"),
    ] {
        let (status, log) = builder.start_refused();
        assert_eq!(status.code(), Some(2), "{log}");
        assert!(log.contains(word), "{log}");
    }
}
