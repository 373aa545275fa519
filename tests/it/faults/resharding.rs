use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::load::Load;
use super::servers_waiting;
use crate::support::cluster::RedisCluster;

const WRITERS: usize = 12;
const MOVING_TIME: Duration = Duration::from_secs(10);
/// Time limit for moving slots until clients have received every kind of redirection.
const MOVING_TIME_LIMIT: Duration = Duration::from_secs(300);
/// Redirections for keys of a slot that is moving or has moved. Omits `TRYAGAIN`, which is too rare: a call receives it
/// only while some of its keys have moved and others have not. On a slow machine, none of 71,000 calls received it.
const REDIRECTIONS: [&str; 2] = ["ASK", "MOVED"];

#[tokio::test]
async fn each_acknowledged_write_is_stored_once_while_slots_move() {
    move_slots_under_load(0, MOVING_TIME).await;
}

#[tokio::test]
async fn confirmed_writes_follow_slots_that_move() {
    move_slots_under_load(1, MOVING_TIME / 2).await;
}

/// Lock that makes the tests run one at a time, because each test keeps all nodes of its own cluster busy.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

async fn move_slots_under_load(wait_replicas: u16, duration: Duration) {
    let _guard = ONE_AT_A_TIME.lock().await;
    // a busy machine must not cause a failover
    let no_failover = ["--cluster-replica-no-failover", "yes"];
    let cluster = Arc::new(RedisCluster::start_with(&no_failover));
    let servers = servers_waiting(&[cluster.url(), cluster.url()], wait_replicas);
    let addresses: Vec<_> = servers.iter().map(super::Server::address).collect();
    let load = Load::new(WRITERS, &addresses);

    let (moved, ()) = join(
        async {
            load.await_more(1).await;
            let moving = Arc::clone(&cluster);
            let moved = spawn_blocking(move || move_slots(&moving, duration))
                .await
                .unwrap();
            load.await_more(1).await;
            load.stop();
            moved
        },
        load.run(),
    )
    .await;

    let account = load.account().await;
    let redirections = REDIRECTIONS.map(|kind| (kind, cluster.errors(kind)));
    println!(
        "{moved} slots moved, wait_replicas {wait_replicas}: {account:?}; redirections {redirections:?}"
    );
    assert_eq!(account.lost, 0);
    // without redirections, the test would prove nothing
    assert!(redirections.iter().all(|&(_, times)| times > 0));
}

fn move_slots(cluster: &RedisCluster, duration: Duration) -> usize {
    let start = Instant::now();
    let saw_each_redirection = || REDIRECTIONS.iter().all(|kind| cluster.errors(kind) > 0);
    let mut moved = 0;
    while start.elapsed() < duration
        || (start.elapsed() < MOVING_TIME_LIMIT && !saw_each_redirection())
    {
        let [mut from, mut to] = [&cluster.nodes[0], &cluster.nodes[1]];
        for _ in 0..2 {
            for slot in RedisCluster::filled_slots(from) {
                if std::ptr::eq(cluster.first_master(slot), &cluster.nodes[0]) {
                    cluster.move_slot(slot, from, to);
                    moved += 1;
                }
            }
            std::mem::swap(&mut from, &mut to);
        }
    }
    moved
}
