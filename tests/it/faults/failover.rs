//! A master ends without a word, and its replica takes its place.

use std::time::{Duration, Instant};

use futures_util::future::join;

use super::load::{Account, Load};
use super::servers;
use crate::support::cluster::RedisCluster;
use crate::support::redis::RedisServer;
use crate::support::sentinel::{MASTER, Watched};

const WRITERS: usize = 12;
/// How long it may take on a busy machine until the replica has taken over and is found.
const RECOVERY: Duration = Duration::from_secs(20);

/// Kills a master under load; what came of it, and how long it took until all was written to again.
async fn kill_under_load(url: &str, master: &RedisServer) -> (Account, Duration) {
    let servers = servers(&[url.to_owned(), url.to_owned()]);
    let addresses: Vec<_> = servers.iter().map(super::Server::address).collect();
    let load = Load::new(WRITERS, &addresses);
    let (took, ()) = join(
        async {
            load.await_more(20).await;
            master.kill();
            let start = Instant::now();
            load.await_more(2).await;
            let took = start.elapsed();
            load.await_more(20).await;
            load.stop();
            took
        },
        load.run(),
    )
    .await;
    (load.account().await, took)
}

#[tokio::test]
async fn a_cluster_goes_on_after_a_master_was_killed() {
    // or all of it would stand still by a setting of Redis
    let cluster = RedisCluster::start_with(&["--cluster-require-full-coverage", "no"]);

    let (account, took) = kill_under_load(&cluster.url(), &cluster.nodes[0]).await;

    println!("a master of a cluster killed: written to again after {took:?}; {account:?}");
    // it had promised to nobody that its replica has what it acknowledged
    assert!(account.lost < account.acknowledged / 100);
    assert!(took < RECOVERY, "{took:?}");
    // who is on the other masters does not wait for it
    let undisturbed = account.gaps[account.gaps.len() / 3];
    assert!(undisturbed < Duration::from_secs(1), "{undisturbed:?}");
}

#[tokio::test]
async fn the_replica_that_sentinels_promote_is_found() {
    let watched = Watched::start();

    let (account, took) = kill_under_load(&watched.url(), &watched.servers[0]).await;

    println!("a master with sentinels killed: written to again after {took:?}; {account:?}");
    assert!(account.lost < account.acknowledged / 100);
    assert!(took < RECOVERY, "{took:?}");
}

#[tokio::test]
async fn a_failover_by_hand_is_followed_at_once() {
    let watched = Watched::start();
    let servers = servers(&[watched.url()]);
    let thread = servers[0].client().thread();
    thread.put("state/k", "1").ok().await;

    watched.sentinels[0].call(&["SENTINEL", "FAILOVER", MASTER]);
    crate::support::until(async || {
        let role = watched.servers[0].call(&["INFO", "replication"]);
        role.contains("role:slave")
    })
    .await;
    let start = Instant::now();
    let works = async || thread.put("state/k", "2").send().await.status == 200;
    crate::support::until(works).await;

    println!(
        "after a failover by hand: written to again after {:?}",
        start.elapsed()
    );
    assert!(start.elapsed() < RECOVERY);
    assert_eq!(thread.state().await, r#"{"k":2}"#);
    let promoted = watched.servers[1].call(&["INFO", "replication"]);
    assert!(promoted.contains("role:master"), "{promoted}");
}
