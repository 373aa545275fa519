use crate::support::client::{Answer, OwnThread};
use crate::support::server::Server;

fn state(bytes: usize) -> String {
    format!(r#"{{"k":"{}"}}"#, "text ".repeat(bytes / 5))
}

async fn read(thread: &OwnThread, accepted: &str) -> Answer {
    let read = thread.get("state").header("accept-encoding", accepted);
    read.ok().await
}

fn is_compressed(answer: &Answer) -> bool {
    match answer.header("content-encoding") {
        None => false,
        Some("gzip") => true,
        Some(other) => panic!("{other}"),
    }
}

fn text(answer: &Answer) -> String {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    let mut text = String::new();
    match is_compressed(answer) {
        true => GzDecoder::new(&answer.body[..])
            .read_to_string(&mut text)
            .map(drop)
            .unwrap(),
        false => text = answer.text(),
    }
    text
}

async fn metrics_are_compressed_for_clients_that_accept_gzip(server: &Server) {
    let read_metrics = async |accepted: &str| {
        let metrics = server.client().get("/metrics");
        metrics.header("accept-encoding", accepted).ok().await
    };

    let (plain, short) = (read_metrics("identity").await, read_metrics("gzip").await);

    assert!(!is_compressed(&plain) && is_compressed(&short));
    for answer in [&plain, &short] {
        assert_eq!(answer.header("vary"), Some("accept-encoding"));
        assert!(text(answer).ends_with("# EOF\n"));
    }
    assert!(short.body.len() < plain.body.len() / 3);
}

#[tokio::test]
async fn a_state_that_is_read_again_is_compressed() {
    use crate::support::READ_CACHE_BYTES;
    use crate::support::server::Backend;
    use crate::support::until;

    let server = Server::builder(Backend::Redis)
        .set(READ_CACHE_BYTES, 1 << 26)
        .start();
    let thread = server.client().thread();
    for bytes in [2_000, 900_000] {
        let plain = state(bytes);
        let tag = thread.put("state", &plain).ok().await.etag().to_owned();
        until(async || is_compressed(&read(&thread, "gzip, deflate, br").await)).await;

        let short = read(&thread, "gzip").await;
        assert_eq!(text(&short), plain);
        assert!(short.body.len() < plain.len() / 5);
        assert_eq!(short.etag(), tag);
        assert!(short.header("vary").unwrap().contains("accept-encoding"));
        for accepted in ["identity", "br", "gzip;q=0", "gzip;q=0.1, identity"] {
            let long = read(&thread, accepted).await;
            assert!(!is_compressed(&long), "{accepted}");
            assert_eq!(long.text(), plain);
        }
        let not_modified = thread.get("state").header("accept-encoding", "gzip");
        let not_modified = not_modified.header("if-none-match", &tag).send().await;
        assert_eq!((not_modified.status, not_modified.body.len()), (304, 0));
        assert!(!is_compressed(&not_modified));

        thread.post("state/list/push", "1").ok().await;
        let changed = read(&thread, "gzip").await;
        let with_list = plain.replacen("}", r#","list":[1]}"#, 1);
        assert_eq!(text(&changed), with_list);
        until(async || is_compressed(&read(&thread, "gzip").await)).await;
        assert_eq!(text(&read(&thread, "gzip").await), with_list);
    }
}

async fn a_state_without_a_cached_copy_is_not_compressed(server: &Server) {
    let thread = server.client().thread();
    for plain in [state(100), state(100_000)] {
        thread.put("state", &plain).ok().await;

        let first = read(&thread, "gzip").await;

        assert!(!is_compressed(&first));
        assert_eq!(first.text(), plain);
    }
    let thread = server.client().thread();
    let short = state(100);
    thread.put("state", &short).ok().await;
    for _ in 0..3 {
        assert!(!is_compressed(&read(&thread, "gzip").await));
    }
}

crate::http::over_both_stores! {
    a_state_without_a_cached_copy_is_not_compressed,
    metrics_are_compressed_for_clients_that_accept_gzip,
}
