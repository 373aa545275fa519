use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use super::Shards;

const PAUSE: Duration = Duration::from_secs(1);

/// Starts the sweeper thread. The thread ends after the last handle to the store is dropped.
pub(super) fn start(shards: &Arc<Shards>) {
    let shards = Arc::downgrade(shards);
    let started = thread::Builder::new()
        .name("threadkeep-sweeper".into())
        .spawn(move || {
            while sweep(&shards) {
                thread::sleep(PAUSE);
            }
        });
    if let Err(error) = started {
        tracing::error!(%error, "cannot start the thread that frees expired threads: their memory stays in use");
    }
}

fn sweep(shards: &Weak<Shards>) -> bool {
    let Some(shards) = shards.upgrade() else {
        return false;
    };
    let now_ms = shards.clock.now_ms();
    for index in 0..shards.shards.len() {
        while shards.sweep(index, now_ms) {}
        let slowest = shards.consumers().slowest(index);
        while shards.tidy(index as u16, slowest, now_ms) {}
    }
    while shards.purge(now_ms) {}
    while shards.counters().sweep(now_ms) {}
    shards.free_excess();
    true
}
