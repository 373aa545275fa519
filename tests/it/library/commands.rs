use std::collections::BTreeMap;

use actix_web::http::StatusCode;
use threadkeep_domain::ThreadId;

use super::Bench;
use super::cost::{idle, read, write};
use crate::conformance::room::redis_at;
use crate::support::redis::{RedisServer, unique_prefix};

#[tokio::test]
async fn a_read_is_one_pipeline_and_a_write_one_script() {
    let server = RedisServer::start();
    let prefix = unique_prefix();
    let replica = async || Bench::new(redis_at(&server.url(), &prefix).await);
    let (writer, reader) = (replica().await, replica().await);
    let id = ThreadId::random();
    // call each replica once, because a worker connects on first use
    request(&writer, "/write", &id).await;
    request(&reader, "/read", &ThreadId::random()).await;

    for (replica, path, scripts, reads) in [
        (&writer, "/idle", 0, 0),
        (&reader, "/read", 1, 1),
        // the writer has cached the thread that it created
        (&writer, "/read", 1, 0),
        (&writer, "/write", 1, 0),
    ] {
        let before = counts(&server);
        request(replica, path, &id).await;
        let after = counts(&server);

        let delta = |name: &str| after.get(name).unwrap_or(&0) - before.get(name).unwrap_or(&0);
        assert_eq!(delta("evalsha"), scripts, "{path}");
        assert_eq!(delta("hgetall"), reads, "{path}");
        assert_eq!(delta("ping") + delta("hello"), 0, "{path}");
    }
}

async fn request(bench: &Bench, path: &str, id: &ThreadId) {
    let response = match path {
        "/idle" => bench.call_as(id, idle).await,
        "/read" => bench.call_as(id, read).await,
        _ => bench.call_as(id, write).await,
    };
    assert_eq!(response.status(), StatusCode::OK);
}

fn counts(server: &RedisServer) -> BTreeMap<String, u64> {
    let stats: String = redis::cmd("INFO")
        .arg("commandstats")
        .query(&mut server.connection())
        .unwrap();
    let count = |line: &str| {
        let (name, figures) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let calls = figures.split(',').next()?.parse().ok()?;
        Some((name.to_owned(), calls))
    };
    stats.lines().filter_map(count).collect()
}
