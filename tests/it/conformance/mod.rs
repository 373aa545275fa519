//! Tests the guarantees that the store traits and the contract require of every store.
//!
//! Each file contains the test cases for one subject. A case is a function that takes a [`room::Room`], which is a
//! store with its clock. A case that no macro lists is dead code, which fails the build.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;

use room::Room;

/// Minimum remaining lifetime of data that a case expects to exist, unless the case tests lifetimes.
const MIN_REMAINING: Duration = Duration::from_secs(1);
const ATTEMPTS: usize = 10;

type Boxed<T> = Pin<Box<dyn Future<Output = T>>>;

/// Runs `case` on a new store. Retries a case that advanced the clock and then failed after a long time, because its
/// data may have expired.
pub(crate) async fn in_time(new_room: &dyn Fn() -> Boxed<Room>, case: &dyn Fn(Room) -> Boxed<()>) {
    for attempt in 1.. {
        let room = new_room().await;
        let (clock, start) = (room.clock.clone(), Instant::now());
        let Err(panic) = AssertUnwindSafe(case(room)).catch_unwind().await else {
            return;
        };
        let is_inconclusive = clock.ahead_ms() > 0 && start.elapsed() > MIN_REMAINING;
        if !is_inconclusive || attempt == ATTEMPTS {
            resume_unwind(panic);
        }
    }
}

/// Defines one test per store for each of these cases.
macro_rules! over_every_store {
    ($($case:ident),* $(,)?) => {
        mod memory {
            $(
                #[tokio::test]
                async fn $case() {
                    crate::conformance::in_time(
                        &|| Box::pin(async { crate::conformance::room::memory() }),
                        &|room| Box::pin(super::$case(room)),
                    )
                    .await;
                }
            )*
        }

        mod redis {
            $(
                #[tokio::test]
                async fn $case() {
                    crate::conformance::in_time(
                        &|| Box::pin(crate::conformance::room::redis()),
                        &|room| Box::pin(super::$case(room)),
                    )
                    .await;
                }
            )*
        }

        mod cluster {
            $(
                #[tokio::test]
                async fn $case() {
                    crate::conformance::in_time(
                        &|| Box::pin(crate::conformance::room::cluster()),
                        &|room| Box::pin(super::$case(room)),
                    )
                    .await;
                }
            )*
        }
    };
}

/// Like `over_every_store`, but also runs each case on a standalone Redis and a cluster whose writes wait for a
/// replica. Use it in files that test every kind of write: effective, repeated and ineffective. `hurried` cases do not
/// wait for a replica, because they must write tens of thousands of times within a minute.
macro_rules! over_every_store_and_confirmed {
    ($($case:ident),* $(,)? $(; hurried: $($hurried:ident),* $(,)?)?) => {
        crate::conformance::over_every_store! { $($case,)* $($($hurried),*)? }

        mod confirmed {
            $(
                #[tokio::test]
                async fn $case() {
                    crate::conformance::in_time(
                        &|| Box::pin(crate::conformance::room::confirmed()),
                        &|room| Box::pin(super::$case(room)),
                    )
                    .await;
                }
            )*
        }

        mod confirmed_cluster {
            $(
                #[tokio::test]
                async fn $case() {
                    crate::conformance::in_time(
                        &|| Box::pin(crate::conformance::room::confirmed_cluster()),
                        &|room| Box::pin(super::$case(room)),
                    )
                    .await;
                }
            )*
        }
    };
}

pub(crate) use over_every_store;
pub(crate) use over_every_store_and_confirmed;

mod appends;
mod archives;
mod arrays;
mod checkpoints;
mod compactions;
mod concurrency;
mod conversations;
mod copies;
mod crowded_buckets;
mod effect_limits;
mod effect_lives;
mod effects;
mod ends;
mod entries;
mod entry_batches;
mod entry_lists;
mod entry_repeats;
mod erasure;
mod events;
mod exactness;
mod expiry;
mod forks;
mod guards;
mod histories;
mod history_limits;
mod history_removals;
mod idempotency;
mod idle_namespaces;
mod image_parts;
pub(crate) mod images;
mod increments;
mod leases;
mod ledgers;
mod limits;
mod listings;
mod model_responses;
mod namespaces;
mod operations;
mod owned_lists;
mod owners;
mod peeks;
mod preconditions;
mod rates;
mod reads;
mod registry;
mod relay_responses;
mod response_lives;
mod response_room;
mod response_turns;
mod responses;
mod restores;
pub(crate) mod room;
mod rotations;
mod scope_archives;
mod scope_concurrency;
mod scope_events;
mod scope_idempotency;
mod scope_key_lifetimes;
mod scope_keys;
mod scope_lifetimes;
mod scope_limits;
mod scope_making;
mod scope_records;
pub(crate) mod scope_room;
mod scope_versions;
mod searches;
pub(crate) mod space;
pub(crate) mod story;
mod streamed_responses;
mod thread_object;
pub(crate) mod thread_scopes;
mod tombstones;
mod turns;
mod upkeep;
mod versions;
mod watching;
