/// Defines two tests for each function: one with the shared server on the embedded store, and one with the shared
/// server on Redis.
macro_rules! over_both_stores {
    ($($test:ident),* $(,)?) => {
        mod memory {
            use crate::support::server::{Backend, Server};
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test(&Server::shared(Backend::Memory)).await;
                }
            )*
        }

        mod redis {
            use crate::support::server::{Backend, Server};
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test(&Server::shared(Backend::Redis)).await;
                }
            )*
        }
    };
}

/// Defines two tests, one per store, for each function. The functions start their own servers with special settings.
macro_rules! with_own_servers {
    ($($test:ident),* $(,)?) => {
        mod memory_alone {
            use crate::support::server::Backend;
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test(Backend::Memory).await;
                }
            )*
        }

        mod redis_alone {
            use crate::support::server::Backend;
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test(Backend::Redis).await;
                }
            )*
        }
    };
}

pub(crate) use {over_both_stores, with_own_servers};

mod all_events;
mod archives;
mod arrays;
mod checkpoints;
mod commands;
mod compactions;
mod compression;
mod conditions;
mod console;
mod cors;
mod counters;
mod effects;
mod entries;
mod entry_batches;
mod entry_repeats;
mod errors;
mod events;
mod every_interface;
mod exactness;
mod examples;
mod expiry;
mod export_import;
mod forks;
mod headers;
mod history;
mod history_changes;
mod idempotency;
mod identity;
mod jwks;
mod limits;
mod logs;
mod many_streams;
mod namespaces;
mod outage;
mod owner_checks;
mod owner_lives;
mod owner_repeats;
mod owners;
mod peeks;
mod pipelines;
mod providers;
mod rates;
mod replicas;
mod reserved_keys;
mod rights;
mod rotations;
mod scopes;
mod service_endpoints;
mod settings;
mod slow_clients;
mod startup;
mod state;
mod stats;
mod thread_object;
mod token_algorithms;
mod tool_calls;
mod tools;
mod traces;
mod turns;
