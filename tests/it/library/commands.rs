//! The cost of the library by Redis' own count.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::test::{TestRequest, call_service, init_service};
use actix_web::{App, web};
use threadkeep::domain::ThreadId;
use threadkeep::identity::THREAD_ID;
use threadkeep::store::Clock;

use super::Bench;
use super::cost::{idle, read, write};
use crate::conformance::room::redis_on;
use crate::support::redis::RedisServer;

#[tokio::test]
async fn a_read_is_one_pipeline_and_a_write_one_script() {
    let server = Arc::new(RedisServer::start());
    let bench = Bench::new(redis_on(Arc::clone(&server), Clock::system()).await);
    let id = ThreadId::random();
    let app = App::new()
        .wrap(bench.threads.clone())
        .route("/idle", web::post().to(idle))
        .route("/read", web::post().to(read))
        .route("/write", web::post().to(write));
    let app = init_service(app).await;
    let call = async |path: &str| {
        let request = TestRequest::post()
            .uri(path)
            .insert_header((THREAD_ID, bench.identity.signed_id(&id)));
        let response = call_service(&app, request.to_request()).await;
        assert_eq!(response.status(), StatusCode::OK);
    };
    // the worker's connection is made at its first use
    call("/write").await;

    for (path, scripts, reads) in [("/idle", 0, 0), ("/read", 1, 1), ("/write", 1, 0)] {
        let before = counts(&server);
        call(path).await;
        let after = counts(&server);

        let delta = |name: &str| after.get(name).unwrap_or(&0) - before.get(name).unwrap_or(&0);
        assert_eq!(delta("evalsha"), scripts, "{path}");
        assert_eq!(delta("hgetall"), reads, "{path}");
        assert_eq!(delta("ping") + delta("hello"), 0, "{path}");
    }
}

/// How often each command was called, by clients and by scripts.
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
