use std::fs;

use reqwest::Method;

use crate::support::certificates::{Authority, Issued, openssl};
use crate::support::client::OwnThread;
use crate::support::cluster::RedisCluster;
use crate::support::redis::{RedisServer, free_port, with_free_ports};
use crate::support::sentinel::MASTER;
use crate::support::server::{API_SECRET, Backend, Builder, Server};
use crate::support::until;

const CERTIFICATE: &str = "THREADKEEP_REDIS_TLS_CERT_FILE";
const KEY: &str = "THREADKEEP_REDIS_TLS_KEY_FILE";

fn without_certificate(url: &str, authority: &Authority) -> Builder {
    let builder = Server::builder(Backend::Memory).redis(url);
    builder.set("SSL_CERT_FILE", &authority.own.certificate)
}

fn with_certificate(url: &str, authority: &Authority, issued: &Issued) -> Builder {
    without_certificate(url, authority)
        .set(CERTIFICATE, &issued.certificate)
        .set(KEY, &issued.key)
}

fn redis(authority: &Authority) -> (RedisServer, String) {
    let own = authority.issue("redis");
    let options = RedisServer::requiring_certificates(&own, authority);
    let (redis, port) = RedisServer::start_encrypted(&options);
    (redis, format!("rediss://127.0.0.1:{port}/0"))
}

async fn assert_works(server: &Server, servers: &[&RedisServer]) {
    let client = server.client();
    let thread = client.thread();
    let mut events = client.get("/v1/events").bearer(API_SECRET).listen().await;
    thread.put("state/k", "[1]").ok().await;
    thread.post("state/k/push", "2").ok().await;
    assert_eq!(thread.state().await, r#"{"k":[1,2]}"#);
    assert!(events.next().await.event.starts_with("thread."));
    client.get("/readyz").ok().await;
    assert_subscribes(&thread, servers).await;
}

/// Asserts that a caller waiting for the turn (the lease of a thread) is woken. The wake-up message arrives on a
/// separate Redis connection.
async fn assert_subscribes(thread: &OwnThread, servers: &[&RedisServer]) {
    let turn = thread.post("turn", r#"{"ttl_seconds":600}"#).ok().await;
    let token = turn.json()["token"].as_str().unwrap().to_owned();
    let waiting = thread.post("turn", r#"{"wait_seconds":30}"#);
    let waiting = tokio::spawn(waiting.send());
    let is_subscribed = async || {
        let mut lists = servers
            .iter()
            .map(|it| it.call(&["CLIENT", "LIST", "TYPE", "pubsub"]));
        lists.any(|list| list.contains("sub=1"))
    };
    until(is_subscribed).await;
    let end = thread.delete("turn").header("x-turn-token", &token);
    assert_eq!(end.send().await.status, 204);
    assert_eq!(waiting.await.unwrap().status, 201);
}

/// Asserts that the server does not start without a certificate, and that its error mentions client certificates.
fn assert_certificate_required(url: &str, authority: &Authority) {
    let (status, log) = without_certificate(url, authority).start_refused();
    assert!(!status.success());
    assert!(log.contains("may require a client certificate"), "{log}");
}

#[tokio::test]
async fn a_client_certificate_connects_to_a_redis_that_requires_one() {
    let authority = Authority::create();
    let (redis, url) = redis(&authority);

    let settings = with_certificate(&url, &authority, &authority.issue("client"));
    let server = settings.start();

    assert_works(&server, &[&redis]).await;
    assert_certificate_required(&url, &authority);
}

#[tokio::test]
async fn a_client_certificate_connects_to_sentinels_and_the_master() {
    let authority = Authority::create();
    let own = authority.issue("redis");
    let options = RedisServer::requiring_certificates(&own, &authority);
    let (master, port) = RedisServer::start_encrypted(&options);
    let lines: String = options
        .chunks(2)
        .map(|option| format!("{} {}\n", option[0].trim_start_matches('-'), option[1]))
        .collect();
    let (_sentinel, sentinel_port) = with_free_ports(|| {
        let sentinel_port = free_port();
        let config = format!(
            "{lines}tls-port {sentinel_port}\ntls-replication yes\n\
             sentinel monitor {MASTER} 127.0.0.1 {port} 1\n"
        );
        Some((RedisServer::try_start_sentinel(&config)?, sentinel_port))
    });
    let url = format!("rediss+sentinel://127.0.0.1:{sentinel_port}/{MASTER}/0");

    let settings = with_certificate(&url, &authority, &authority.issue("client"));
    let server = settings.start();

    assert_works(&server, &[&master]).await;
    assert_certificate_required(&url, &authority);
}

#[tokio::test]
async fn a_client_certificate_connects_to_all_nodes_of_a_cluster() {
    let authority = Authority::create();
    let own = authority.issue("redis");
    let options = RedisServer::requiring_certificates(&own, &authority);
    let cluster = RedisCluster::start_encrypted_with(&options);
    let url = format!("rediss+cluster://{}", cluster.hosts);

    let settings = with_certificate(&url, &authority, &authority.issue("client"));
    let server = settings.start();

    for _ in 0..20 {
        let thread = server.client().thread();
        thread.put("state/k", "[1]").ok().await;
    }
    let filled = |node| !RedisCluster::filled_slots(node).is_empty();
    assert!(cluster.nodes[..3].iter().all(filled));
    let nodes: Vec<_> = cluster.nodes.iter().collect();
    assert_works(&server, &nodes).await;
    assert_certificate_required(&url, &authority);
}

#[tokio::test]
async fn every_key_format_and_certificate_chains_work() {
    let authority = Authority::create();
    let (_redis, url) = redis(&authority);
    let rsa = authority.issue_with("rsa", &["rsa:2048"]);
    let ec = authority.issue("ec");
    let ed25519 = authority.issue_with("ed25519", &["ed25519"]);
    let intermediate = authority.intermediate();
    let chained = intermediate.issue("chained");
    append(&intermediate.own.certificate, &chained.certificate);
    let both = authority.issue("both");
    append(&both.key, &both.certificate);
    let both = Issued {
        key: both.certificate.clone(),
        ..both
    };

    for issued in [
        rsa.traditional(),
        ec.traditional(),
        rsa,
        ec,
        ed25519,
        chained,
        both,
    ] {
        let settings = with_certificate(&url, &authority, &issued);
        let server = settings.start();
        let thread = server.client().thread();
        thread.put("state/k", "1").ok().await;
    }
}

fn append(from: &str, to: &str) {
    let text = [to, from].map(|path| fs::read_to_string(path).unwrap());
    fs::write(to, text.concat()).unwrap();
}

fn close_connections(redis: &RedisServer) {
    for kind in ["normal", "pubsub"] {
        redis.call(&["CLIENT", "KILL", "TYPE", kind]);
    }
}

#[tokio::test]
async fn a_renewed_certificate_needs_no_restart() {
    let authority = Authority::create();
    let (redis, url) = redis(&authority);
    let used = authority.issue("client");
    let server = with_certificate(&url, &authority, &used).start();
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;
    let new_authority = Authority::create();
    let renewed = new_authority.issue("client");

    // from here on, Redis accepts only the renewed certificate
    let trust = &new_authority.own.certificate;
    redis.call(&["CONFIG", "SET", "tls-ca-cert-file", trust]);
    fs::copy(&renewed.certificate, &used.certificate).unwrap();
    fs::copy(&renewed.key, &used.key).unwrap();
    close_connections(&redis);

    until(async || thread.put("state/k", "2").send().await.status == 200).await;
    server.await_log(|line| line.contains("show the renewed client certificate"));
    let put = || thread.by_api_key(Method::PUT, "state/k").json("3");
    until(async || put().send().await.status == 200).await;
    until(async || server.client().get("/readyz").send().await.status == 200).await;
}

#[tokio::test]
async fn an_unusable_renewal_keeps_the_previous_certificate() {
    let authority = Authority::create();
    let (redis, url) = redis(&authority);
    let used = authority.issue("client");
    let server = with_certificate(&url, &authority, &used).start();
    let thread = server.client().thread();
    let [certificate, key] = [&used.certificate, &used.key].map(|path| fs::read(path).unwrap());
    let other = authority.issue("other");
    let half = &certificate[..certificate.len() / 2];

    for (content, fault) in [
        (half, "not in PEM form, or is incomplete"),
        (b"", "contains no certificate"),
        (&fs::read(&other.certificate).unwrap()[..], "must belong to"),
    ] {
        fs::write(&used.certificate, content).unwrap();
        until(async || {
            close_connections(&redis);
            let written = thread.put("state/k", "1").send().await;
            written.status == 200 && server.log().contains(fault)
        })
        .await;
    }
    fs::remove_file(&used.key).unwrap();
    until(async || {
        close_connections(&redis);
        thread.put("state/k", "1").send().await;
        server.log().contains("key of the client certificate")
    })
    .await;

    let log = server.log();
    let key = String::from_utf8(key).unwrap();
    for line in key
        .lines()
        .chain(["BEGIN"])
        .filter(|it| !it.starts_with("--"))
    {
        assert!(!log.contains(line), "{log}");
    }
}

#[test]
fn an_unusable_certificate_prevents_startup() {
    let authority = Authority::create();
    let [client, other] = ["client", "other"].map(|name| authority.issue(name));
    let encrypted = authority.file("encrypted.key");
    openssl(&[
        "pkey",
        "-in",
        &client.key,
        "-aes256",
        "-passout",
        "pass:secret",
        "-out",
        &encrypted,
    ]);
    let file = |name: &str, content: &str| {
        let path = authority.file(name);
        fs::write(&path, content).unwrap();
        path
    };
    let text = fs::read_to_string(&client.key).unwrap();
    let half = file("half", &text[..text.len() / 2]);
    let damaged = file("damaged", &text.replace("MIG", "AAA"));
    let twice = file("twice", &text.repeat(2));
    let large = file("large", &" ".repeat(300_000));
    let empty = file("empty", "");
    let not_a_certificate = file(
        "not-a-certificate",
        "-----BEGIN CERTIFICATE-----\nc2VjcmV0\n-----END CERTIFICATE-----\n",
    );
    let missing = authority.file("missing");
    let directory = authority.file(".");
    let (certificate, key) = (&client.certificate[..], &client.key[..]);
    let tls = "rediss://127.0.0.1:1";

    for (url, certificate, key, setting, fault) in [
        (
            tls,
            certificate,
            "",
            "key",
            "required as `redis_tls_cert_file` is set",
        ),
        (
            tls,
            "",
            key,
            "cert",
            "required as `redis_tls_key_file` is set",
        ),
        (tls, &missing, key, "cert", "cannot read"),
        (tls, certificate, &missing, "key", "cannot read"),
        (tls, &directory, key, "cert", "is not a file"),
        (tls, certificate, "/dev/zero", "key", "is not a file"),
        (tls, &large, key, "cert", "more than 262144 bytes"),
        (tls, certificate, &large, "key", "more than 262144 bytes"),
        (tls, &empty, key, "cert", "no certificate"),
        (tls, key, key, "cert", "no certificate"),
        (tls, &not_a_certificate, key, "cert", "damaged"),
        (
            tls,
            certificate,
            &empty,
            "key",
            "no unencrypted private key",
        ),
        (
            tls,
            certificate,
            certificate,
            "key",
            "no unencrypted private key",
        ),
        (
            tls,
            certificate,
            &encrypted,
            "key",
            "no unencrypted private key",
        ),
        (tls, certificate, &half, "key", "incomplete"),
        (tls, certificate, &damaged, "key", "damaged"),
        (tls, certificate, &twice, "key", "more than one private key"),
        (
            tls,
            certificate,
            &other.key,
            "key",
            "must belong to the first certificate",
        ),
        (tls, &text, key, "cert", "the path of a file"),
        (tls, certificate, &text, "key", "the path of a file"),
        (
            "redis://127.0.0.1:1",
            certificate,
            key,
            "cert",
            "empty, unless",
        ),
        (
            "redis+cluster://127.0.0.1:1",
            certificate,
            key,
            "cert",
            "empty, unless",
        ),
        (
            "unix:///run/redis.sock",
            certificate,
            key,
            "cert",
            "empty, unless",
        ),
        ("", certificate, key, "cert", "empty, unless"),
    ] {
        let settings = without_certificate(url, &authority);
        let (status, log) = settings
            .set(CERTIFICATE, certificate)
            .set(KEY, key)
            .start_refused();

        let context = format!("{url} {certificate} {key}: {log}");
        assert!(!status.success(), "{context}");
        assert!(
            log.contains(&format!("`redis_tls_{setting}_file`")),
            "{context}"
        );
        assert!(log.contains(fault), "{context}");
        let secret = text.lines().nth(1).unwrap();
        assert!(
            !log.contains(secret) && !log.contains("c2VjcmV0"),
            "{context}"
        );
    }
}
