//! Tests limits on the memory that anonymous clients can make the server use, and on the delays that they can cause for
//! other clients.
//!
//! Each server has an address space of 4 GB, so that a leak crashes the server rather than the machine.

mod answers;
mod bodies;
mod exports;
mod idle;
mod mcp;
mod merge_patches;
mod pipelines;
mod redis_time;
mod store;
mod tools;

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::support::server::{Backend, Builder, Server};

const ADDRESS_SPACE_BYTES: u64 = 4_000_000_000;
/// Maximum CPU time that an unoptimized server may use while another client waits for an answer to `/healthz`.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
const MB: u64 = 1_000_000;

fn builder(backend: Backend) -> Builder {
    Server::builder(backend).address_space(ADDRESS_SPACE_BYTES)
}

/// Waits until the server's resident memory is at most `limit` bytes. Sends requests, because the allocator returns
/// freed memory sooner while the server works.
async fn await_resident(server: &Server, limit: u64) {
    let memory_returned = async {
        while server.resident_bytes() > limit {
            server.client().get("/healthz").ok().await;
            sleep(Duration::from_millis(20)).await;
        }
    };
    let is_returned = timeout(Duration::from_secs(120), memory_returned)
        .await
        .is_ok();
    assert!(is_returned, "{} bytes are in use", server.resident_bytes());
}
