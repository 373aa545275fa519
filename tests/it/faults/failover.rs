use std::time::{Duration, Instant};

use futures_util::future::join;

use super::load::{Account, Load};
use super::{Server, servers, servers_waiting, write};
use crate::support::cluster::RedisCluster;
use crate::support::redis::RedisServer;
use crate::support::sentinel::{MASTER, Watched};
use crate::support::{unless_paused, until};

const WRITERS: usize = 12;
/// A failed attempt is retried if the machine paused for this long, because writers or a replica may then lag behind.
const PAUSE: Duration = Duration::from_millis(300);
/// Time limit for the replica to be promoted and for the servers to find it, even on a busy machine.
const RECOVERY: Duration = Duration::from_secs(100);

/// Kills a master under load. Returns the outcomes, and the time until all threads could be written to again.
///
/// Writes that wait for a replica resume only once the old master has restarted as a replica of the promoted server.
async fn kill_under_load(
    servers: &[Server],
    wait_replicas: u16,
    [master, replica]: [&RedisServer; 2],
    follow: impl Fn(),
) -> (Account, Duration) {
    let addresses: Vec<_> = servers.iter().map(Server::address).collect();
    let load = Load::new(WRITERS, &addresses);
    let (took, ()) = join(
        async {
            load.await_more(20).await;
            master.kill();
            let start = Instant::now();
            if wait_replicas > 0 {
                until(async || has_role(replica, "role:master")).await;
                println!("the replica was promoted after {:?}", start.elapsed());
                master.restart();
                follow();
            }
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

fn two_servers(url: &str, wait_replicas: u16) -> Vec<Server> {
    servers_waiting(&[url.to_owned(), url.to_owned()], wait_replicas)
}

/// Returns whether `server` reports `role`. Calls fail while a sentinel is changing the role.
fn has_role(server: &RedisServer, role: &str) -> bool {
    let info = server.try_call(&["INFO", "replication"]);
    info.is_ok_and(|info| info.contains(role))
}

/// Retries until a failover loses less than 1% of the acknowledged writes. On a busy machine, individual failovers may
/// lose more, because a master does not wait for its replica.
async fn assert_loses_little(kill: impl AsyncFn() -> Account) {
    let mut lost = Vec::new();
    for _ in 0..6 {
        let account = kill().await;
        if account.lost < account.acknowledged / 100 {
            return;
        }
        lost.push((account.lost, account.acknowledged));
    }
    panic!("lost and acknowledged: {lost:?}");
}

async fn kill_a_master_of_a_cluster(wait_replicas: u16) -> Account {
    // by default, the whole cluster stops when a master fails
    let cluster = RedisCluster::start_with(&["--cluster-require-full-coverage", "no"]);
    let servers = two_servers(&cluster.url(), wait_replicas);
    // kill the master that holds the key `watched`, which writes read once a second
    let settings = servers[0].settings();
    let watched = format!("{}:watched", settings.value("THREADKEEP_KEY_PREFIX"));
    let [master, replica] = cluster.pair_with(&watched);

    // the other masters demote the old master to a replica
    let follow = || {};
    let killed = kill_under_load(&servers, wait_replicas, [master, replica], follow);
    let (account, took) = killed.await;

    println!(
        "a master of a cluster killed, wait_replicas {wait_replicas}: written to again after \
         {took:?}; {account:?}"
    );
    assert!(took < RECOVERY, "{took:?}");
    // writers to the other masters are not delayed
    let undisturbed = account.gaps[account.gaps.len() / 3];
    assert!(undisturbed < took / 2, "{undisturbed:?} of {took:?}");
    account
}

#[tokio::test]
async fn a_cluster_recovers_after_a_master_is_killed() {
    unless_paused(PAUSE, async || {
        assert_loses_little(async || kill_a_master_of_a_cluster(0).await).await;
    })
    .await;
}

#[tokio::test]
async fn a_cluster_loses_no_confirmed_write_when_a_master_is_killed() {
    unless_paused(PAUSE, async || {
        let account = kill_a_master_of_a_cluster(1).await;

        assert_eq!(account.lost, 0);
        assert!(account.unavailable > 0);
    })
    .await;
}

async fn kill_a_master_with_sentinels(wait_replicas: u16) -> Account {
    let watched = Watched::start();
    let [master, replica] = &watched.servers;

    // do not wait for the sentinels, which demote the old master only later
    let port = replica.port().to_string();
    let follow = || drop(master.call(&["REPLICAOF", "127.0.0.1", &port]));
    let servers = two_servers(&watched.url(), wait_replicas);
    let pair = [master, replica];
    let (account, took) = kill_under_load(&servers, wait_replicas, pair, follow).await;

    println!(
        "a master with sentinels killed, wait_replicas {wait_replicas}: written to again after \
         {took:?}; {account:?}"
    );
    assert!(took < RECOVERY, "{took:?}");
    account
}

#[tokio::test]
async fn servers_find_the_replica_that_sentinels_promote() {
    assert_loses_little(async || kill_a_master_with_sentinels(0).await).await;
}

#[tokio::test]
async fn the_replica_that_sentinels_promote_has_each_confirmed_write() {
    let account = kill_a_master_with_sentinels(1).await;

    assert_eq!(account.lost, 0);
    assert!(account.unavailable > 0);
}

#[tokio::test]
async fn servers_follow_a_manual_failover() {
    let watched = Watched::start();
    let servers = servers(&[watched.url()]);
    let thread = servers[0].client().thread();
    write(&thread, "1").await;

    watched.sentinels[0].call(&["SENTINEL", "FAILOVER", MASTER]);
    until(async || has_role(&watched.servers[0], "role:slave")).await;
    let start = Instant::now();
    let works = async || thread.put("state/k", "2").send().await.status == 200;
    until(works).await;

    println!(
        "after a manual failover: written to again after {:?}",
        start.elapsed()
    );
    assert!(start.elapsed() < RECOVERY);
    assert_eq!(thread.state().await, r#"{"k":2}"#);
    assert!(has_role(&watched.servers[1], "role:master"));
}
