use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::client::{Client, Request};
use crate::support::paths::scratch;
use crate::support::server::{API_SECRET, Backend, Builder, Server};

pub(super) const SECRET: &str = "what ids are derived with, 32 bytes and more";
const SHARED: &str = "a-shared-secret-of-at-least-32-bytes";

fn by_header(backend: Backend) -> Builder {
    Server::builder(backend)
        .set("THREADKEEP_IDENTITY", "header")
        .set("THREADKEEP_IDENTITY_HEADER", "x-user")
        .set("THREADKEEP_IDENTITY_SECRET", SECRET)
        .set("THREADKEEP_TRUSTED_PROXIES", "127.0.0.1")
}

pub(super) fn by_token(backend: Backend, key: &Path) -> Builder {
    Server::builder(backend)
        .set("THREADKEEP_IDENTITY", "jwt")
        .set("THREADKEEP_IDENTITY_JWT_KEY_FILE", key.display())
        .set("THREADKEEP_IDENTITY_SECRET", SECRET)
}

pub(super) fn file(name: &str, content: &str) -> PathBuf {
    let directory = scratch().join("providers");
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join(name);
    fs::write(&path, content).unwrap();
    path
}

fn request_current(client: &Client, method: Method, path: &str) -> Request {
    client.request(method, &format!("/v1/threads/current{path}"))
}

async fn each_user_of_the_proxy_has_one_thread(backend: Backend) {
    let server = by_header(backend).start();
    let client = server.client();
    let put = |user: &str| {
        request_current(&client, Method::PUT, "/state/k")
            .json("1")
            .header("x-user", user)
    };

    put("ada").ok().await;

    let again = put("ada").ok().await;
    let other = put("bob").ok().await;
    assert_eq!((again.version(), other.version()), (2, 1));
    assert_eq!(again.header("set-cookie"), None);
    let anonymous = request_current(&client, Method::GET, "/state");
    anonymous.refused(401, "unknown_caller").await;
}

async fn an_untrusted_proxy_names_no_user(backend: Backend) {
    let server = by_header(backend)
        .set("THREADKEEP_TRUSTED_PROXIES", "192.0.2.1")
        .start();

    request_current(&server.client(), Method::GET, "/state")
        .header("x-user", "ada")
        .refused(401, "unknown_caller")
        .await;
}

async fn a_signed_id_alone_opens_nothing_with_an_identity_provider(backend: Backend) {
    let server = by_header(backend).start();
    let client = server.client();
    let own = request_current(&client, Method::GET, "")
        .header("x-user", "ada")
        .ok()
        .await;
    let signed = own.header("x-thread-id").unwrap();
    let path = format!("/v1/threads/{}/state", own.json()["id"].as_str().unwrap());

    client
        .get(&path)
        .header("x-thread-id", signed)
        .refused(401, "api_key_required")
        .await;
    client
        .get(&path)
        .header("x-user", "bob")
        .refused(401, "api_key_required")
        .await;
    client.get(&path).header("x-user", "ada").ok().await;
    client.get(&path).bearer(API_SECRET).ok().await;
    client
        .post("/v1/threads")
        .json("{}")
        .refused(401, "api_key_required")
        .await;
}

async fn pages_of_other_sites_cannot_write_as_a_user(backend: Backend) {
    let server = by_header(backend)
        .set("THREADKEEP_CORS_ORIGINS", "https://app.example")
        .start();
    let client = server.client();
    let write = |origin: &str| {
        request_current(&client, Method::POST, "/state/n/increment")
            .header("x-user", "ada")
            .header("origin", origin)
    };

    write("https://evil.example")
        .refused(403, "origin_not_allowed")
        .await;
    write("https://app.example").ok().await;
    write(&format!("http://{}", server.address())).ok().await;
}

async fn a_user_can_reuse_an_ended_thread(backend: Backend) {
    let server = by_header(backend).start();
    let client = server.client();
    let as_ada =
        |method: Method, path: &str| request_current(&client, method, path).header("x-user", "ada");
    as_ada(Method::PUT, "/state/k").json("1").ok().await;

    assert_eq!(as_ada(Method::DELETE, "").send().await.status, 204);

    let first = as_ada(Method::PUT, "/state/k").json("2").ok().await;
    assert_eq!(first.version(), 1);
}

fn token(algorithm: Algorithm, key: &EncodingKey, claims: &Value) -> String {
    encode(&Header::new(algorithm), claims, key).unwrap()
}

async fn a_stream_ends_when_its_token_expires(backend: Backend) {
    /// Number of seconds after `exp` during which the server still accepts a token.
    const LEEWAY: u64 = 60;
    let secret = file(&format!("stream-secret-{backend:?}"), SHARED);
    let server = by_token(backend, &secret).start();
    let client = server.client();
    let key = EncodingKey::from_secret(SHARED.as_bytes());
    let of_ada = |method: Method, path: &str, exp: u64| {
        let claims = json!({"sub": "ada", "exp": exp});
        request_current(&client, method, path).bearer(&token(Algorithm::HS256, &key, &claims))
    };
    let later = get_current_timestamp() + 3_600;
    let mut lasting = of_ada(Method::GET, "/events", later).listen().await;

    // on a slow machine, the token may expire before the stream opens, so retry with a later `exp`
    let mut seconds_left = 3;
    let ending = loop {
        let exp = get_current_timestamp() - LEEWAY + seconds_left;
        let stream = of_ada(Method::GET, "/events", exp).begin().await;
        if stream.status() == 200 {
            break stream;
        }
        seconds_left *= 4;
    };

    let text = timeout(Duration::from_secs(seconds_left + 120), ending.text()).await;
    let text = text.expect("the stream should end").unwrap();
    assert!(text.starts_with("retry: "), "{text}");
    let put = of_ada(Method::PUT, "/state/k", later);
    put.json("1").ok().await;
    assert_eq!(lasting.next().await.event, "thread.created");
}

async fn each_subject_of_a_token_has_one_thread(backend: Backend) {
    let secret = file(&format!("secret-{backend:?}"), SHARED);
    let server = by_token(backend, &secret).start();
    let client = server.client();
    let key = EncodingKey::from_secret(SHARED.as_bytes());
    let exp = get_current_timestamp() + 3_600;
    let put = |claims: &Value| {
        request_current(&client, Method::PUT, "/state/k")
            .json("1")
            .bearer(&token(Algorithm::HS256, &key, claims))
    };

    put(&json!({"sub": "ada", "exp": exp})).ok().await;
    let again = put(&json!({"sub": "ada", "exp": exp + 1})).ok().await;
    let other = put(&json!({"sub": "bob", "exp": exp})).ok().await;

    assert_eq!((again.version(), other.version()), (2, 1));
    for claims in [
        json!({"sub": "ada"}),
        json!({"sub": "ada", "exp": exp - 2 * 3_600}),
        json!({"sub": "ada", "exp": exp, "nbf": exp + 3_600}),
        json!({"exp": exp}),
    ] {
        put(&claims).refused(401, "unknown_caller").await;
    }
}

async fn a_public_key_verifies_and_never_signs(backend: Backend) {
    let private = file(&format!("private-{backend:?}.pem"), "");
    let public = file(&format!("public-{backend:?}.pem"), "");
    openssl(
        &["genpkey", "-algorithm", "ed25519", "-out"],
        &private,
        None,
    );
    openssl(&["pkey", "-pubout", "-in"], &private, Some(&public));
    let pem = fs::read_to_string(&public).unwrap();
    // some programs write text before the key
    let with_preamble = file(
        &format!("with-preamble-{backend:?}.pem"),
        &format!("Bag Attributes: x\n{pem}"),
    );
    let claims = json!({"sub": "ada", "exp": get_current_timestamp() + 3_600});
    let signed = token(
        Algorithm::EdDSA,
        &EncodingKey::from_ed_pem(&fs::read(&private).unwrap()).unwrap(),
        &claims,
    );

    for path in [&public, &with_preamble] {
        let server = by_token(backend, path).start();
        let read_state =
            |token: &str| request_current(&server.client(), Method::GET, "/state").bearer(token);
        let content = fs::read_to_string(path).unwrap();
        let forged = EncodingKey::from_secret(content.trim().as_bytes());

        read_state(&signed).ok().await;
        read_state(&token(Algorithm::HS256, &forged, &claims))
            .refused(401, "unknown_caller")
            .await;
    }
}

async fn key_material_that_is_neither_pem_nor_a_secret_is_refused(backend: Backend) {
    let jwks = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    let path = file(&format!("jwks-{backend:?}.json"), jwks);

    let (status, log) = by_token(backend, &path).start_refused();

    assert_eq!(status.code(), Some(2), "{log}");
    assert!(log.contains("identity_jwt_key_file"), "{log}");
}

pub(super) fn openssl(args: &[&str], file: &Path, out: Option<&Path>) {
    let mut command = Command::new("openssl");
    command.args(args).arg(file);
    if let Some(out) = out {
        command.arg("-out").arg(out);
    }
    let output = command
        .output()
        .expect("openssl makes the keys of this test");
    assert!(output.status.success(), "{output:?}");
}

with_own_servers! {
    each_user_of_the_proxy_has_one_thread,
    an_untrusted_proxy_names_no_user,
    a_signed_id_alone_opens_nothing_with_an_identity_provider,
    pages_of_other_sites_cannot_write_as_a_user,
    a_user_can_reuse_an_ended_thread,
    each_subject_of_a_token_has_one_thread,
    a_public_key_verifies_and_never_signs,
    a_stream_ends_when_its_token_expires,
    key_material_that_is_neither_pem_nor_a_secret_is_refused,
}
