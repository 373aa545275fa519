//! Replicas in this process that are killed at a chosen call of the store, and the place on a Redis that others find
//! afterwards.

use std::sync::Arc;

use crate::conformance::room::{Room, redis_at};
use crate::support::cutting::{Counted, Cut, CuttingProxy};
use crate::support::redis::{self, RedisServer};

/// More changes than any call makes.
const MOST: u64 = 200;

/// A replica of a kind that a test starts.
pub(crate) trait Replica {
    /// Commands that may change what it leaves.
    const CHANGES: &'static [&'static str];

    /// One over that store.
    fn start(room: &Room) -> Self;
}

/// A prefix on a Redis, which replicas use.
pub(crate) struct Place {
    pub redis: Arc<RedisServer>,
    pub prefix: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            redis: redis::shared(),
            prefix: redis::unique_prefix(),
        }
    }

    pub(crate) async fn replica<R: Replica>(&self) -> R {
        R::start(&redis_at(&self.redis.url(), &self.prefix).await)
    }

    /// A call to a replica that is killed at that change of something. Whether it was killed before it had answered.
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

/// Each change, and whether Redis makes it before its client is killed.
pub(crate) fn cuts() -> impl Iterator<Item = (u64, Cut)> {
    (0..MOST).flat_map(|passed| [(passed, Cut::Before), (passed, Cut::After)])
}
