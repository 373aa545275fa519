use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::account::Account;
use crate::args::Args;
use crate::error::LoadError;
use crate::hosts::Hosts;
use crate::scenario::Group;

#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) hosts: Hosts,
    pub(crate) account: Account,
    pub(crate) api_key: Option<Arc<str>>,
    /// Time limit for retrying a request, and for waiting until the service is ready.
    pub(crate) retry_time: Duration,
    pub(crate) timeout: Duration,
    pub(crate) group: Group,
    pub(crate) started: Instant,
    writers: AtomicU32,
    keys: AtomicU64,
}

impl Run {
    pub(crate) fn new(args: &Args) -> Result<Self, LoadError> {
        Ok(Self {
            id: format!("{:08x}", rand::random::<u32>()),
            hosts: Hosts::new(args.hosts.clone()),
            account: Account::default(),
            api_key: args.api_key()?,
            retry_time: Duration::from_secs(args.retry_seconds),
            timeout: Duration::from_millis(args.timeout_ms),
            group: Group::default(),
            started: Instant::now(),
            writers: AtomicU32::new(0),
            keys: AtomicU64::new(0),
        })
    }

    pub(crate) fn next_writer(&self) -> u32 {
        self.writers.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn next_idempotency_key(&self) -> String {
        let number = self.keys.fetch_add(1, Ordering::Relaxed);
        format!("{}-{number}", self.id)
    }
}
