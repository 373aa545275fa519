use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::middleware::from_fn;
use actix_web::rt::System;
use actix_web::{App, HttpServer};
use threadkeep_domain::scope::ScopePolicies;
use threadkeep_domain::{EntryPolicy, KeyRing, ReservedKeys, SigningKey, ThreadPolicy};
use threadkeep_events::{EventSettings, Events};
use threadkeep_http::{Api, Compressor, Readiness, envelope};
use threadkeep_identity::{ApiKey, ApiKeys, CookieSettings, Identity};
use threadkeep_service::{
    ArchiveService, CheckpointService, EffectService, ImageService, NamespaceService, OwnerService,
    ScopeService, ThreadService, TurnService,
};
use threadkeep_stats::Stats;
use threadkeep_store::{Backend, Clock};
use threadkeep_store_memory::MemoryStore;
use threadkeep_webhooks::{WebhookSettings, Webhooks};

use super::faulty_store::{Fault, FaultyStore};

/// The API key, which gives access to all threads.
pub(crate) const API_KEY: &str = "an-api-secret-of-the-tests-that-is-long-enough";

pub(crate) struct Server {
    address: SocketAddr,
    handle: ServerHandle,
    thread: Option<JoinHandle<()>>,
    faults: Arc<AtomicU64>,
}

impl Server {
    pub(crate) fn start(fault: Fault) -> Self {
        let faults = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&faults);
        let (started, starts) = mpsc::channel();
        let thread = thread::spawn(move || {
            System::new().block_on(async move {
                let api = api(fault, counted);
                let events = api.events.clone();
                let server = HttpServer::new(move || {
                    App::new()
                        .wrap(from_fn(envelope))
                        .configure(|config| api.configure(config))
                });
                let server = server.workers(2).disable_signals();
                let server = server.bind(("127.0.0.1", 0)).unwrap();
                let address = server.addrs()[0];
                let server = server.run();
                started.send((address, server.handle())).unwrap();
                server.await.unwrap();
                events.shutdown().await;
            });
        });
        let (address, handle) = starts.recv().unwrap();
        Self {
            address,
            handle,
            thread: Some(thread),
            faults,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn faults(&self) -> u64 {
        self.faults.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // `stop` sends the command immediately; the future that it returns only waits for the server to stop
        drop(self.handle.stop(false));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn api(fault: Fault, faults: Arc<AtomicU64>) -> Api {
    // long enough for a busy machine
    let timeout = Duration::from_secs(30);
    let backend: Arc<dyn Backend> = Arc::new(MemoryStore::new(Clock::system()));
    let store = FaultyStore::new(Arc::clone(&backend) as _, fault, faults);
    let service = ThreadService::new(Arc::new(store), ThreadPolicy::THREAD, timeout);
    let events = Events::start(Arc::clone(&backend), EventSettings::default());
    let ring = KeyRing::new(vec![SigningKey::new("main", b"a secret of the tests")]).unwrap();
    let scopes = Arc::clone(&backend) as _;
    let (images, buckets) = (Arc::clone(&backend), Arc::clone(&backend));
    Api {
        images: ImageService::new(images as _, buckets as _, ScopePolicies::DEFAULT),
        scopes: ScopeService::new(scopes, service.clone(), ScopePolicies::DEFAULT, timeout),
        checkpoints: CheckpointService::new(Arc::clone(&backend) as _, service.clone()),
        effects: EffectService::new(Arc::clone(&backend) as _, service.clone()),
        turns: TurnService::new(Arc::clone(&backend) as _, service.clone(), Arc::default()),
        archives: ArchiveService::new(Arc::clone(&backend) as _, service.clone()),
        service,
        owners: OwnerService::new(Arc::clone(&backend) as _, Arc::clone(&backend) as _),
        namespaces: NamespaceService::new(backend as _, EntryPolicy::DEFAULT),
        reserved_keys: ReservedKeys::default(),
        webhooks: Webhooks::start(events.clone(), WebhookSettings::default()),
        events,
        identity: Identity::new(ring, CookieSettings::default()),
        api_keys: ApiKeys::new([(ApiKey::named("ops"), API_KEY)]),
        readiness: Readiness::default(),
        settings: Arc::default(),
        stats: Stats::default(),
        compressor: Compressor::default(),
    }
}
