use std::time::{Duration, Instant};

use futures_util::future::join4;
use tokio::time::sleep;

use super::load::Load;
use super::{SLACK, Server, TIMEOUT, address, servers, url};
use crate::support::proxy::{Mode, Proxy};
use crate::support::redis;
use crate::support::{unless_paused, until};

const WRITERS: usize = 6;
const PARTITION_DURATION: Duration = Duration::from_secs(6);
/// Maximum number of connections that a server opens in ten seconds, during and after a partition. Two workers,
/// background work and health checks each retry after a timeout of 2 s.
const CONNECTIONS: u64 = 20;

#[tokio::test]
async fn a_replica_that_is_cut_off_from_redis_does_not_affect_others() {
    unless_paused(Duration::from_millis(300), cut_off).await;
}

async fn cut_off() {
    let redis = redis::shared();
    let link = Proxy::start(address(&redis));
    let servers = servers(&[url(link.address()), redis.url(), redis.url()]);
    let addresses: Vec<_> = servers.iter().map(Server::address).collect();
    // the loads are separate, so that the test can check that the partition does not delay the writes of `others`
    let cut_off = Load::new(WRITERS, &addresses[..1]);
    let others = Load::new(WRITERS, &addresses[1..]);
    // each retry of `around` reaches a different replica than the previous attempt
    let around = Load::new(WRITERS, &addresses);

    let ((made, lasted), (), (), ()) = join4(
        async {
            for load in [&cut_off, &others, &around] {
                load.await_more(20).await;
            }
            let (before, start) = (link.accepted(), Instant::now());
            link.set(Mode::Losing);
            sleep(PARTITION_DURATION).await;
            others.await_more(20).await;
            let still = servers[0].client().get("/readyz").send().await.status;
            assert_eq!(still, 503);
            link.set(Mode::Open);
            println!("cut off for {:?}", start.elapsed());
            let healed = Instant::now();
            cut_off.await_more(1).await;
            println!(
                "each of its writers wrote again after {:?}",
                healed.elapsed()
            );
            assert!(healed.elapsed() < TIMEOUT + SLACK);
            for load in [&cut_off, &others, &around] {
                load.await_more(20).await;
                load.stop();
            }
            (link.accepted() - before, start.elapsed())
        },
        cut_off.run(),
        others.run(),
        around.run(),
    )
    .await;

    let [cut_off, others, around] = [cut_off.account(), others.account(), around.account()];
    let (cut_off, others, around) = (cut_off.await, others.await, around.await);
    println!(
        "{made} connections were made by the one that was cut off: {cut_off:?}; others {others:?}; \
         by turns {around:?}"
    );
    for account in [&cut_off, &others, &around] {
        assert_eq!(account.lost, 0);
    }
    assert!(cut_off.unavailable > 0 && around.unavailable > 0);
    assert_eq!(others.unavailable, 0);
    let longest = others.gaps.last().unwrap();
    assert!(*longest < PARTITION_DURATION / 4, "{longest:?}");
    assert!(made > 0);
    let made_max = CONNECTIONS.max(lasted.as_secs() * CONNECTIONS / 10);
    assert!(made <= made_max, "{made}");
    let ready = async || servers[0].client().get("/readyz").send().await.status == 200;
    until(ready).await;
}
