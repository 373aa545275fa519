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
}

impl Log {
    /// Adds a request with its number.
    pub(crate) fn add(&self, mut request: ModelRequest) -> ModelRequest {
        self.entries.send_modify(|entries| {
            request.number = entries.requests.len() + 1;
            entries.requests.push(request.clone());
        });
        request
    }

    pub(crate) fn add_fault(&self, fault: String) {
        self.entries
            .send_modify(|entries| entries.faults.push(fault));
    }

    /// Changes the request with that number.
    pub(crate) fn change(&self, number: usize, change: impl FnOnce(&mut ModelRequest)) {
        self.entries
            .send_modify(|entries| change(&mut entries.requests[number - 1]));
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
