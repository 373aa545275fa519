//! The record of requests and their mistakes.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::request::ModelRequest;

/// A record that tests can wait on.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: watch::Sender<Entries>,
}

#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub(crate) requests: Vec<ModelRequest>,
    pub(crate) faults: Vec<String>,
    /// The number of the oldest requests that were dropped.
    dropped: usize,
    /// Maximum requests and faults, each; none keeps all.
    limit: Option<usize>,
}

impl Entries {
    /// Drops the oldest of a list that is too long, and returns their number.
    fn trim<T>(&mut self, list: impl FnOnce(&mut Self) -> &mut Vec<T>) -> usize {
        let limit = self.limit.unwrap_or(usize::MAX);
        let list = list(self);
        list.drain(..list.len().saturating_sub(limit)).count()
    }
}

impl Log {
    /// Keeps only the newest `limit` requests and faults from now on.
    pub(crate) fn limit(&self, limit: usize) {
        self.entries
            .send_modify(|entries| entries.limit = Some(limit));
    }

    /// Adds a request with its number.
    pub(crate) fn add(&self, mut request: ModelRequest) -> ModelRequest {
        self.entries.send_modify(|entries| {
            request.number = entries.dropped + entries.requests.len() + 1;
            entries.requests.push(request.clone());
            entries.dropped += entries.trim(|entries| &mut entries.requests);
        });
        request
    }

    pub(crate) fn add_fault(&self, fault: String) {
        self.entries.send_modify(|entries| {
            entries.faults.push(fault);
            entries.trim(|entries| &mut entries.faults);
        });
    }

    /// Changes the request with that number, if it was not dropped.
    pub(crate) fn change(&self, number: usize, change: impl FnOnce(&mut ModelRequest)) {
        self.entries.send_modify(|entries| {
            let index = (number - 1).checked_sub(entries.dropped);
            if let Some(request) = index.and_then(|index| entries.requests.get_mut(index)) {
                change(request);
            }
        });
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&Entries) -> T) -> T {
        read(&self.entries.borrow())
    }

    /// Waits until a condition holds, at most 30 s.
    pub(crate) async fn until(&self, condition: impl Fn(&Entries) -> bool, claim: &str) {
        let mut entries = self.entries.subscribe();
        let holds = entries.wait_for(|entries| condition(entries));
        let holds = timeout(Duration::from_secs(30), holds).await.is_ok();
        assert!(holds, "{claim}");
    }
}
