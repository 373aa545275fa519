//! The promises of every store, as the traits and the contract state them.
//!
//! Each file is a chapter of cases. A case is a function of a [`room::Room`], which holds a store and its clock; a
//! case that is not listed is dead code, which the build refuses.

/// Makes a test of each of these cases for each store.
macro_rules! over_every_store {
    ($($case:ident),* $(,)?) => {
        mod memory {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case(crate::conformance::room::memory()).await;
                }
            )*
        }

        #[cfg(feature = "redis")]
        mod redis {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case(crate::conformance::room::redis().await).await;
                }
            )*
        }

        #[cfg(feature = "redis")]
        mod cluster {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case(crate::conformance::room::cluster().await).await;
                }
            )*
        }
    };
}

/// The same, and over Redis whose writes wait for a replica, alone and in a cluster: chapters in which
/// writes of every kind are done, are done again and do nothing. Not those at the end, which must do tens
/// of thousands of writes in a minute.
macro_rules! over_every_store_and_confirmed {
    ($($case:ident),* $(,)? $(; hurried: $($hurried:ident),* $(,)?)?) => {
        crate::conformance::over_every_store! { $($case,)* $($($hurried),*)? }

        #[cfg(feature = "redis")]
        mod confirmed {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case(crate::conformance::room::confirmed().await).await;
                }
            )*
        }

        #[cfg(feature = "redis")]
        mod confirmed_cluster {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case(crate::conformance::room::confirmed_cluster().await).await;
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
mod concurrency;
mod conversations;
mod copies;
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
mod model_turns;
mod namespaces;
mod operations;
mod owned_lists;
mod owners;
mod preconditions;
mod rates;
mod reads;
mod registry;
mod relay_turns;
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
mod streamed_turns;
mod thread_object;
pub(crate) mod thread_scopes;
mod tombstones;
mod turns;
mod upkeep;
mod versions;
mod watching;
