use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::request::ModelRequest;

#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: watch::Sender<Entries>,
}

#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub(crate) requests: Vec<ModelRequest>,
    pub(crate) faults: Vec<String>,
    /// Number of old requests that were dropped.
    dropped: usize,
    /// Maximum number of requests, and of faults, to keep. `None` keeps all requests and faults.
    limit: Option<usize>,
}

/// Removes the oldest elements if there are more than `limit`. Returns the number of removed elements.
fn trim<T>(list: &mut Vec<T>, limit: Option<usize>) -> usize {
    let excess = list.len().saturating_sub(limit.unwrap_or(usize::MAX));
    list.drain(..excess).count()
}

impl Log {
    /// Keeps only the newest `limit` requests and faults.
    pub(crate) fn limit(&self, limit: usize) {
        self.entries
            .send_modify(|entries| entries.limit = Some(limit));
    }

    pub(crate) fn add(&self, mut request: ModelRequest) -> ModelRequest {
        self.entries.send_modify(|entries| {
            request.number = entries.dropped + entries.requests.len() + 1;
            entries.requests.push(request.clone());
            entries.dropped += trim(&mut entries.requests, entries.limit);
        });
        request
    }

    pub(crate) fn add_fault(&self, fault: String) {
        self.entries.send_modify(|entries| {
            entries.faults.push(fault);
            trim(&mut entries.faults, entries.limit);
        });
    }

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

    /// Waits until `condition` holds. Panics after 30 s.
    pub(crate) async fn wait_until(&self, condition: impl Fn(&Entries) -> bool, claim: &str) {
        let mut entries = self.entries.subscribe();
        let holds = entries.wait_for(|entries| condition(entries));
        let holds = timeout(Duration::from_secs(30), holds).await.is_ok();
        assert!(holds, "{claim}");
    }
}
