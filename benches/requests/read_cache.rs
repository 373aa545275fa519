use std::io;
use std::net::SocketAddr;

use super::connection::Connection;
use super::request::request;

/// Minimum share of reads that must hit or miss as expected. A few differ, because a thread's first read always misses.
const EXPECTED_SHARE_MIN: f64 = 0.98;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reads {
    hits: u64,
    misses: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Expected {
    Hits,
    Misses,
}

impl Reads {
    pub(super) async fn of(server: SocketAddr) -> io::Result<Self> {
        let mut connection = Connection::open(server).await?;
        let page = connection
            .exchange(&request("GET /metrics", None, ""))
            .await?;
        let page = String::from_utf8_lossy(page);
        let counter = |name: &str| {
            let mut lines = page.lines();
            let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            let count = line.and_then(|count| count.parse().ok());
            count.ok_or_else(|| io::Error::other(format!("no {name} in the metrics")))
        };
        Ok(Self {
            hits: counter("threadkeep_read_cache_hits_total")?,
            misses: counter("threadkeep_read_cache_misses_total")?,
        })
    }

    pub(super) fn since(self, before: Self) -> Self {
        Self {
            hits: self.hits - before.hits,
            misses: self.misses - before.misses,
        }
    }

    pub(super) fn hit_rate(self) -> f64 {
        self.hits as f64 / (self.hits + self.misses).max(1) as f64
    }
}

impl Expected {
    pub(super) fn is_met_by(self, hit_rate: f64) -> bool {
        match self {
            Self::Hits => hit_rate >= EXPECTED_SHARE_MIN,
            Self::Misses => hit_rate <= 1.0 - EXPECTED_SHARE_MIN,
        }
    }
}
