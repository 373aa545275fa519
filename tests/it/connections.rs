use std::fs;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use threadkeep_store::{Backend as _, Clock, StoreError};
use threadkeep_store_redis::{RedisSettings, RedisStore};

use crate::conformance::room::{Subject, push, set};
use crate::support::certificates::Authority;
use crate::support::cluster::{self, RedisCluster};
use crate::support::redis::{self, RedisServer, free_port, unique_prefix};
use crate::support::sentinel::{MASTER, Watched};
use crate::support::server::{Backend, Server};

const PASSWORD: &str = "p@ss:w/rd%";
const PASSWORD_IN_URL: &str = "p%40ss%3Aw%2Frd%25";

/// The ACL rights in docs/redis.md, with the key prefixes that the tests use.
static RIGHTS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let page = include_str!("../../docs/redis.md");
    let line = page.lines().find(|line| line.starts_with("ACL SETUSER"));
    let (_, rights) = line.unwrap().split_once(">PASSWORD ").unwrap();
    let rights = rights.split(' ').map(|right| match right {
        "~tk:*" => "~it-*",
        "&tk:*" => "&it-*",
        _ => right,
    });
    rights.collect()
});

async fn connect(url: &str, key_prefix: &str) -> Result<RedisStore, StoreError> {
    let settings = RedisSettings {
        key_prefix: key_prefix.into(),
        timeout: Duration::from_secs(5),
        ..RedisSettings::new(url)
    };
    RedisStore::connect(settings, Clock::system()).await
}

async fn assert_works(url: &str) {
    let store = connect(url, &unique_prefix()).await.unwrap();
    let thread = Subject::of(Arc::new(store.clone()));
    thread.merge(&[push("k", "1")]).await;
    let by_worker = Subject {
        store: store.for_worker(),
        ..thread.clone()
    };
    by_worker.merge(&[push("k", "2")]).await;
    assert_eq!(thread.state().await.unwrap(), r#"{"k":[1,2]}"#);
}

/// Connects to a Redis server that the store must reject. Returns the error in every form that may be logged.
async fn refusal(url: &str, key_prefix: &str) -> String {
    let error = connect(url, key_prefix).await.unwrap_err();
    let StoreError::Unavailable(cause) = &error else {
        panic!("{error:?}");
    };
    format!("{error}: {cause} ({error:?})")
}

#[tokio::test]
async fn a_unix_socket_works() {
    let redis = redis::shared();
    let socket = redis.socket();
    let socket = socket.to_str().unwrap();

    assert_works(&format!("unix://{socket}")).await;
    assert_works(&format!("redis+unix://{socket}?db=2")).await;
}

#[tokio::test]
async fn a_correct_user_and_password_work_and_wrong_ones_are_refused() {
    let secret = format!(">{PASSWORD}");
    let redis = RedisServer::start_with(&[
        "--requirepass",
        PASSWORD,
        "--user",
        "app",
        "on",
        &secret,
        "~it-*",
        "+@all",
    ]);
    let host = format!("127.0.0.1:{}", redis.port());
    let socket = redis.socket();
    let socket = socket.to_str().unwrap();

    assert_works(&format!("redis://:{PASSWORD_IN_URL}@{host}")).await;
    assert_works(&format!("redis://app:{PASSWORD_IN_URL}@{host}/0")).await;
    assert_works(&format!("unix://{socket}?user=app&pass={PASSWORD_IN_URL}")).await;
    for wrong in [
        format!("redis://{host}"),
        format!("redis://:{PASSWORD_IN_URL}x@{host}"),
        format!("redis://nobody:{PASSWORD_IN_URL}@{host}"),
    ] {
        let refusal = refusal(&wrong, &unique_prefix()).await;
        assert!(!refusal.contains(PASSWORD), "{refusal}");
        assert!(!refusal.contains(PASSWORD_IN_URL), "{refusal}");
    }
}

#[tokio::test]
async fn a_database_number_keeps_threads_in_that_database() {
    let redis = RedisServer::start();
    let mut connection = redis.connection();

    assert_works(&format!("{}/3", redis.url())).await;

    let keyspace: String = ::redis::cmd("INFO")
        .arg("keyspace")
        .query(&mut connection)
        .unwrap();
    assert!(keyspace.contains("db3:"), "{keyspace}");
    assert!(!keyspace.contains("db0:"), "{keyspace}");
}

#[tokio::test]
async fn deployments_with_different_prefixes_share_a_redis_in_isolation() {
    let redis = RedisServer::start();
    let one = Subject::of(Arc::new(connect(&redis.url(), "one").await.unwrap()));
    let other = Subject {
        store: Arc::new(connect(&redis.url(), "one-more").await.unwrap()),
        ..one.clone()
    };

    one.merge(&[set("k", "1")]).await;
    assert!(!other.exists().await);
    other.merge(&[set("k", "2")]).await;
    other.destroy().await;

    assert_eq!(one.state().await.unwrap(), r#"{"k":1}"#);
    let keys = redis.keys();
    let is_prefixed = |key: &String| key.starts_with("one:") || key.starts_with("one-more:");
    assert!(keys.iter().all(is_prefixed), "{keys:?}");
}

#[tokio::test]
async fn a_redis_that_evicts_living_threads_is_refused() {
    for policy in ["allkeys-lru", "volatile-lru", "volatile-ttl"] {
        let redis = RedisServer::start_with(&["--maxmemory-policy", policy]);

        let refusal = refusal(&redis.url(), "tk").await;

        assert!(refusal.contains("noeviction"), "{refusal}");
    }
}

/// Without keepalives, NATs and load balancers silently drop idle connections.
#[tokio::test]
async fn idle_connections_use_tcp_keepalives() {
    let redis = RedisServer::start();
    let store = connect(&redis.url(), &unique_prefix()).await.unwrap();
    let thread = Subject::of(Arc::new(store));
    thread.merge(&[push("k", "1")]).await;
    let redis_end = format!("0100007F:{:04X}", redis.port());
    // returns one value per established connection to Redis: true if its timer is the keepalive timer (2)
    let timers = || {
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        let rows = table.lines().map(|row| row.split_whitespace().collect());
        let rows = rows.filter(|row: &Vec<_>| row[2] == redis_end && row[3] == "01");
        rows.map(|row| row[5].starts_with("02")).collect::<Vec<_>>()
    };

    crate::support::until(async || {
        let timers = timers();
        !timers.is_empty() && timers.into_iter().all(|is_keepalive| is_keepalive)
    })
    .await;
}

#[tokio::test]
async fn a_prefix_with_a_different_storage_layout_is_refused() {
    let redis = RedisServer::start();
    for layout in ["2 128", "1 256"] {
        ::redis::cmd("SET")
            .arg("tk:layout")
            .arg(layout)
            .exec(&mut redis.connection())
            .unwrap();

        let refusal = refusal(&redis.url(), "tk").await;

        assert!(refusal.contains("layout"), "{refusal}");
    }
    assert!(connect(&redis.url(), "other").await.is_ok());
    assert!(connect(&redis.url(), "other").await.is_ok());
}

#[tokio::test]
async fn an_unreachable_redis_is_reported_immediately() {
    let start = Instant::now();

    let nobody = format!("redis://127.0.0.1:{}", free_port());
    let refusal = refusal(&nobody, "tk").await;

    assert!(refusal.contains("refused"), "{refusal}");
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn tls_works_only_with_a_trusted_certificate() {
    let authority = Authority::create();
    let own = authority.issue("redis");
    let (_redis, port) = RedisServer::start_encrypted(&RedisServer::encrypted(&own, &authority));
    let url = format!("rediss://127.0.0.1:{port}");
    // trusted certificates apply to a whole process, so start each server as a separate process
    let settings = Server::builder(Backend::Memory).redis(&url);

    let trusting = settings
        .clone()
        .set("SSL_CERT_FILE", &authority.own.certificate)
        .start();
    let thread = trusting.client().thread();
    thread.put("state/k", "[1]").ok().await;
    thread.post("state/k/push", "2").ok().await;
    assert_eq!(thread.state().await, r#"{"k":[1,2]}"#);

    let (status, log) = settings.start_refused();
    assert!(!status.success());
    assert!(log.contains("certificate"), "{log}");
}

#[tokio::test]
async fn tls_reaches_all_nodes_of_a_cluster() {
    let authority = Authority::create();
    let own = authority.issue("redis");
    let cluster = RedisCluster::start_encrypted(&own, &authority);
    let url = format!("rediss+cluster://{}", cluster.hosts);

    let server = Server::builder(Backend::Memory)
        .redis(&url)
        .set("SSL_CERT_FILE", &authority.own.certificate)
        .start();

    for _ in 0..20 {
        let thread = server.client().thread();
        thread.put("state/k", "[1]").ok().await;
        assert_eq!(thread.state().await, r#"{"k":[1]}"#);
    }
    let filled = |node| !RedisCluster::filled_slots(node).is_empty();
    assert!(cluster.nodes[..3].iter().all(filled));
}

#[tokio::test]
async fn a_user_and_a_password_reach_all_nodes_of_a_cluster() {
    let cluster = RedisCluster::start();
    for node in &cluster.nodes {
        node.restrict_to("app", PASSWORD, &RIGHTS);
    }

    let hosts = &cluster.hosts;
    assert_works(&format!("redis+cluster://app:{PASSWORD_IN_URL}@{hosts}")).await;
    for wrong in ["", "app:wrong-secret@"] {
        let refusal = refusal(&format!("redis+cluster://{wrong}{hosts}"), &unique_prefix()).await;
        let is_authentication_error = ["NOAUTH", "WRONGPASS"]
            .iter()
            .any(|code| refusal.contains(code));
        assert!(is_authentication_error, "{refusal}");
        assert!(!refusal.contains("wrong-secret"), "{refusal}");
    }
}

#[tokio::test]
async fn sentinels_and_the_master_can_have_different_passwords() {
    let watched = Watched::start();
    for server in &watched.servers {
        server.restrict_to("app", PASSWORD, &RIGHTS);
    }
    for sentinel in &watched.sentinels {
        sentinel.restrict_to("watcher", "another-secret", &["+@all"]);
    }
    let url = |app: &str, watcher: &str| {
        let hosts = watched.hosts();
        format!(
            "redis+sentinel://{app}@{hosts}/{MASTER}\
             ?sentinel_username=watcher&sentinel_password={watcher}"
        )
    };
    let app = format!("app:{PASSWORD_IN_URL}");

    assert_works(&url(&app, "another-secret")).await;
    for wrong in [
        url(&app, "wrong-secret"),
        url("app:wrong-secret", "another-secret"),
    ] {
        let refusal = refusal(&wrong, &unique_prefix()).await;
        assert!(!refusal.contains("-secret"), "{refusal}");
    }
}

#[tokio::test]
async fn an_unknown_master_and_a_wrong_url_scheme_are_reported() {
    let watched = Watched::start();
    let cluster = cluster::shared();

    let unknown = watched.url().replace(MASTER, "other");
    let unknown = refusal(&unknown, "tk").await;
    assert!(
        unknown.contains("has no master with this name"),
        "{unknown}"
    );
    let node = refusal(&cluster.nodes[0].url(), "tk").await;
    assert!(node.contains("redis+cluster://"), "{node}");
    let sentinel = refusal(&watched.sentinels[0].url(), "tk").await;
    assert!(sentinel.contains("redis+sentinel://"), "{sentinel}");
    let single = watched.servers[0].url().replace("redis", "redis+cluster");
    let single = refusal(&single, "tk").await;
    assert!(single.contains("cluster support disabled"), "{single}");
}
