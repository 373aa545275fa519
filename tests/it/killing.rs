//! Kills replicas in this process at a chosen store call. Tests then check what other replicas find in Redis.

use std::sync::Arc;

use crate::conformance::room::{Room, redis_at};
use crate::support::cutting::{Counted, Cut, CuttingProxy};
use crate::support::redis::{self, RedisServer};

/// Maximum number of changes, more than any call makes.
const CHANGES_MAX: u64 = 200;

pub(crate) trait Replica {
    /// Redis commands that count as changes. A replica is killed at one of these commands.
    const CHANGES: &'static [&'static str];

    fn start(room: &Room) -> Self;
}

pub(crate) struct Deployment {
    pub redis: Arc<RedisServer>,
    pub prefix: String,
}

impl Deployment {
    pub(crate) fn new() -> Self {
        Self {
            redis: redis::shared(),
            prefix: redis::unique_prefix(),
        }
    }

    pub(crate) async fn replica<R: Replica>(&self) -> R {
        R::start(&redis_at(&self.redis.url(), &self.prefix).await)
    }

    /// Runs `call` on a new replica. Kills the replica at the first change in Redis after it has made `passed` changes.
    /// Returns whether the replica was killed.
    pub(crate) async fn call_and_kill<R: Replica, T>(
        &self,
        about: &[&str],
        (passed, cut): (u64, Cut),
        call: impl AsyncFnOnce(&R) -> T,
    ) -> bool {
        let target = ([127, 0, 0, 1], self.redis.port()).into();
        let counted = Counted {
            names: R::CHANGES,
            about: about.iter().map(ToString::to_string).collect(),
        };
        let proxy = CuttingProxy::start(target, counted, cut);
        let replica = R::start(&redis_at(&proxy.url(), &self.prefix).await);
        proxy.arm(passed);
        call(&replica).await;
        proxy.was_cut().await
    }
}

pub(crate) fn cuts() -> impl Iterator<Item = (u64, Cut)> {
    (0..CHANGES_MAX).flat_map(|passed| [(passed, Cut::Before), (passed, Cut::After)])
}
