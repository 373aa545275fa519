//! Requests to random threads, with nine reads per push.

use std::io;
use std::net::SocketAddr;

use super::load::Requests;
use super::reads::reads;
use super::scenario::{MESSAGES, messages, push, threads};

const REQUESTS_PER_PUSH: u64 = 10;

pub(super) struct Mix {
    reads: Vec<Vec<u8>>,
    pushes: Vec<Vec<u8>>,
}

impl Mix {
    /// Creates `count` threads. Each thread has the maximum number of messages, so a push removes the oldest one.
    pub(super) async fn over(count: usize, server: SocketAddr) -> io::Result<Self> {
        let ids = threads(server, count, |n| messages(n, MESSAGES)).await?;
        Ok(Self {
            reads: reads(&ids),
            pushes: push(&ids, MESSAGES),
        })
    }
}

impl Requests for Mix {
    fn nth(&self, n: usize) -> &[u8] {
        let random = scattered(n as u64);
        let requests = match random % REQUESTS_PER_PUSH {
            0 => &self.pushes,
            _ => &self.reads,
        };
        &requests[(random / REQUESTS_PER_PUSH) as usize % requests.len()]
    }
}

/// Returns the `n`th value of a fixed pseudorandom sequence (`SplitMix64`: Steele, Lea and Flood 2014).
fn scattered(n: u64) -> u64 {
    let mut z = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
