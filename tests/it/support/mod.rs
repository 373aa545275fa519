//! Servers, Redis, a client, and bytes on a socket.

#[cfg(feature = "redis")]
pub(crate) mod busy;
pub(crate) mod client;
#[cfg(feature = "redis")]
pub(crate) mod cluster;
#[cfg(feature = "redis")]
pub(crate) mod cutting;
pub(crate) mod heartbeat;
pub(crate) mod in_process;
#[cfg(feature = "redis")]
pub(crate) mod killing;
pub(crate) mod listening;
#[cfg(feature = "redis")]
pub(crate) mod monitor;
pub(crate) mod pages;
#[cfg(feature = "redis")]
pub(crate) mod proxy;
pub(crate) mod raw;
pub(crate) mod receiver;
#[cfg(feature = "redis")]
pub(crate) mod redis;
#[cfg(feature = "redis")]
pub(crate) mod replicated;
pub(crate) mod scopes;
#[cfg(feature = "redis")]
pub(crate) mod sentinel;
pub(crate) mod server;

pub(crate) use threadkeep_scripted_upstream as upstream;

/// The setting that a run of the tests may have of its own, in the environment: memory for copies.
pub(crate) const READ_CACHE_BYTES: &str = "THREADKEEP_READ_CACHE_BYTES";

/// Waits until a condition holds; a test whose condition never does fails.
pub(crate) async fn until<F: Future<Output = bool>>(condition: impl Fn() -> F) {
    use std::time::Duration;
    use tokio::time::{sleep, timeout};
    let holds = async {
        while !condition().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(30), holds)
        .await
        .expect("the condition should come to hold");
}
