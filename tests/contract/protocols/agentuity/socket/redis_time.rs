use std::time::Duration;

use crate::support::agentuity_socket::{Socket, about};
use crate::support::busy::Busy;
use crate::support::client::new_id;
use crate::support::server::{Backend, Server};

/// Maximum time for which a call may block Redis: twice the documented limit of 60 ms for clients with an API key,
/// because other processes share the processor's caches and may slow Redis down.
const BLOCKED_MAX: Duration = Duration::from_millis(120);
const OPERATIONS: usize = 10_000;

fn start(redis: &Busy) -> Server {
    Server::builder(Backend::Memory).redis(&redis.url()).start()
}

fn joined(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(",")
}

#[tokio::test]
async fn the_largest_merge_blocks_redis_briefly() {
    let redis = Busy::start();
    let server = start(&redis);
    let push = |key: usize, window: usize| {
        format!(r#"{{"op":"push","key":"k{key}","value":1,"maxRecords":{window}}}"#)
    };
    let to_many = joined(OPERATIONS, |number| push(number, 9));
    let to_one = joined(OPERATIONS, |number| push(0, 1_000 + number % 2));

    for operations in [to_many, to_one] {
        let operations = format!("[{operations}]");
        redis
            .assert_below(
                BLOCKED_MAX,
                async || (),
                async |()| {
                    let mut socket = Socket::open(&server).await;
                    socket.merge(&new_id(), &operations).await;
                },
            )
            .await;
    }

    let clears = joined(OPERATIONS + 1, |_| r#"{"op":"clear"}"#.into());
    let data = about(&new_id(), &[("operations", &format!("[{clears}]"))]);
    let why = Socket::open(&server).await.refused("merge", &data).await;
    assert_eq!(why, "a merge has at most 10000 operations");
}

#[tokio::test]
async fn a_save_that_appends_to_thousands_of_arrays_blocks_redis_briefly() {
    let redis = Busy::start();
    let server = start(&redis);
    let state = |array: &str| {
        let members = joined(9_000, |number| format!(r#""k{number}":{array}"#));
        format!("{{{members}}}")
    };
    let (before, after) = (state("[1,2]"), state("[1,2,3]"));
    let prepare = async || {
        let id = new_id();
        Socket::open(&server).await.save(&id, &before).await;
        id
    };
    let save = async |id: &String| {
        let mut socket = Socket::open(&server).await;
        socket.restore(id).await;
        socket.save(id, &after).await;
        assert!(socket.restore(id).await.unwrap().contains(":[1,2,3]"));
    };

    redis.assert_below(BLOCKED_MAX, prepare, save).await;
}
