use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use redis::{ErrorKind, RedisError};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::Nodes;
use super::slots::SlotMap;
use crate::transport::node::{ConnectionRegistry, Fault, Node, Origin, Server};
use crate::transport::{Call, Endpoint, Host, command};

/// Minimum pause between refreshes.
const REFRESH_INTERVAL_MIN: Duration = Duration::from_millis(100);

pub(super) struct Topology {
    seeds: Vec<Host>,
    template: Box<Endpoint>,
    map: RwLock<Arc<SlotMap>>,
    /// Entries remain while a connection to the server exists.
    servers: std::sync::Mutex<HashMap<Host, Weak<Server>>>,
    /// Number of replies that contradicted the slot map. `settled` is the number when the current map was requested.
    doubts: AtomicU64,
    settled: AtomicU64,
    /// Time of the last refresh. Locked during a refresh.
    refreshed: Mutex<Option<Instant>>,
    failure: std::sync::Mutex<Option<RedisError>>,
    /// Counter that rotates which node is tried first.
    choices: AtomicUsize,
    timeout: Duration,
}

impl Topology {
    pub(super) fn new(seeds: Vec<Host>, template: Box<Endpoint>, timeout: Duration) -> Self {
        Self {
            seeds,
            template,
            map: RwLock::new(Arc::new(SlotMap::empty())),
            servers: std::sync::Mutex::default(),
            doubts: AtomicU64::new(1),
            settled: AtomicU64::new(0),
            refreshed: Mutex::new(None),
            failure: std::sync::Mutex::default(),
            choices: AtomicUsize::new(0),
            timeout,
        }
    }

    pub(super) fn server(&self, host: &Host, registry: &Arc<ConnectionRegistry>) -> Arc<Server> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = servers.get(host).and_then(Weak::upgrade) {
            return server;
        }
        servers.retain(|_, server| server.strong_count() > 0);
        let origin = Origin::Server(Box::new(self.template.at(host)));
        let server = Arc::new(Server::new(origin, self.timeout, Arc::clone(registry)));
        servers.insert(host.clone(), Arc::downgrade(&server));
        server
    }

    pub(super) fn open(&self) -> u64 {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let current = servers.iter().filter(|(host, _)| self.knows(host));
        let current = current.filter_map(|(_, server)| server.upgrade());
        current.filter(|server| server.is_open()).count() as u64
    }

    pub(super) fn map(&self) -> Arc<SlotMap> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records a reply that contradicts the map.
    pub(super) fn doubt(&self) {
        self.doubts.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a different host each time.
    pub(super) fn any_of<'a>(&self, hosts: &'a [Host]) -> Option<&'a Host> {
        let choice = self.choices.fetch_add(1, Ordering::Relaxed);
        hosts.get(choice % hosts.len().max(1))
    }

    pub(super) fn any_endpoint(&self) -> Endpoint {
        let map = self.map();
        let nodes: Vec<_> = map.nodes().cloned().collect();
        let host = self.any_of(&nodes).or_else(|| self.any_of(&self.seeds));
        host.map_or_else(|| (*self.template).clone(), |host| self.template.at(host))
    }

    pub(super) fn knows(&self, host: &Host) -> bool {
        self.seeds.contains(host) || self.map().nodes().any(|node| node == host)
    }

    /// Refreshes the slot map if a reply has contradicted it, unless the last refresh was a moment ago. If another
    /// caller is already refreshing the map, waits for that caller only if there is no map yet.
    pub(super) async fn refresh(&self, nodes: &Nodes) {
        // reads the counter before the refresh, so that a contradiction during the refresh causes another refresh
        let doubts = self.doubts.load(Ordering::Relaxed);
        if doubts == self.settled.load(Ordering::Relaxed) {
            return;
        }
        let mut refreshed = if self.map().masters().is_empty() {
            self.refreshed.lock().await
        } else {
            match self.refreshed.try_lock() {
                Ok(refreshed) => refreshed,
                Err(_) => return,
            }
        };
        if refreshed.is_some_and(|refreshed| refreshed.elapsed() < REFRESH_INTERVAL_MIN) {
            return;
        }
        *refreshed = Some(Instant::now());
        if let Some(map) = self.fetch(nodes).await {
            *self.map.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(map);
            self.settled.store(doubts, Ordering::Relaxed);
        }
    }

    /// Asks one node after another for the slot map. Starts with a different node each time, so that a hung or isolated
    /// node does not affect every caller.
    async fn fetch(&self, nodes: &Nodes) -> Option<SlotMap> {
        let map = self.map();
        let hosts: Vec<_> = map.nodes().collect();
        let choice = self.choices.fetch_add(1, Ordering::Relaxed) % hosts.len().max(1);
        let (later, first) = hosts.split_at(choice.min(hosts.len()));
        for host in first.iter().chain(later).copied().chain(&self.seeds) {
            let node = nodes.get(self, host);
            if let Some(map) = self.fetch_from(&node, host).await {
                return Some(map);
            }
        }
        None
    }

    /// Returns the error for a slot that no known node owns.
    pub(super) fn unserved(&self) -> Fault {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let unserved = || (ErrorKind::Io, "no node of the cluster is known to serve it").into();
        let failure = failure.clone().filter(|_| self.map().masters().is_empty());
        Fault::Connect(failure.unwrap_or_else(unserved))
    }

    async fn fetch_from(&self, node: &Node, host: &Host) -> Option<SlotMap> {
        let mut slots = command("CLUSTER");
        slots.arg("SLOTS");
        let limit = self.timeout / 8;
        let deadline = Instant::now() + 2 * limit;
        let slots = [slots];
        let call = Call {
            checked: 0,
            ..Call::new(&slots, deadline).unlimited()
        };
        let replies = timeout(limit, node.call(call)).await;
        let reply = match replies {
            Ok(Ok(replies)) => replies.into_iter().next()?.extract_error(),
            Ok(Err(Fault::Connect(error) | Fault::Call(error))) => Err(error),
            Ok(Err(_)) | Err(_) => return None,
        };
        match reply {
            Ok(reply) => SlotMap::read(&reply, host),
            Err(error) => {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                *failure = Some(error);
                None
            }
        }
    }
}
