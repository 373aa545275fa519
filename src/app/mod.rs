//! Assembles the server from settings.

mod connections;
mod console;
mod cors;
mod home;
mod levels;
mod metrics;
mod responses;
mod server_info;
mod settings_list;
mod store;
mod traces;
mod worker;

use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use actix_web::App;
use actix_web::dev::Server;
use actix_web::middleware::{Condition, from_fn};
use futures_util::future::join3;
use prometheus_client::registry::Registry;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

use crate::config::{CorsOrigins, Settings, own_origin};
use crate::telemetry::{
    Connections, HttpMetrics, ObservedStore, Observer, RequestLogs, ResponseMetrics,
    register_events, register_jwks, register_links, register_log, register_memory,
    register_process, register_rates, register_read_cache, register_running_responses,
    register_signing, register_sockets, register_unreadable,
};
use connections::{ConnectionSettings, Listener};
pub use console::ConsoleLinks;
use levels::ServerLevels;
use responses::ResponsesThread;
pub use server_info::ServerInfo;
use threadkeep_domain::{BODY_MAX_BYTES, KeyRing};
use threadkeep_events::{EventSettings, Events};
use threadkeep_http::{Compressor, Readiness, count_by_address, envelope, refuse_head};
use threadkeep_identity::Identity;
use threadkeep_protocols::agentuity::SocketCounters;
use threadkeep_responses::ResponseService;
use threadkeep_stats::Stats;
use threadkeep_store::{Backend, StoreError};
use threadkeep_trace::Tracer;
use threadkeep_webhooks::{WebhookSettings, Webhooks};
use traces::Traces;
use worker::Shared;

/// Interval at which a stopping server checks for remaining clients.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Time limit for releasing model responses while the server stops, so that other replicas can resume them.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);

pub struct Application {
    server: Server,
    address: SocketAddr,
    /// The server for metrics, if metrics have their own address.
    metrics: Option<(SocketAddr, Server)>,
    events: Events,
    sockets: Arc<SocketCounters>,
    responses: Option<ResponseService>,
    /// Runs model responses until dropped.
    _responses_thread: Option<ResponsesThread>,
    console: Option<ConsoleLinks>,
    readiness: Readiness,
    traces: Traces,
    drain: Duration,
    shutdown: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error("cannot listen on {0}")]
    Listen(SocketAddr, #[source] io::Error),
    /// The store is unreachable, or rejects these settings.
    #[error("cannot open the store")]
    Store(#[from] StoreError),
    /// The HTTP client rejects the settings of the named upstream.
    #[error("cannot use the settings of upstream {0}")]
    Upstream(String, #[source] Box<dyn Error + Send + Sync>),
    #[error("the server failed")]
    Run(#[from] io::Error),
}

impl Application {
    /// Opens the store and the listening socket. Requests are not answered until the application runs.
    pub async fn build(mut settings: Settings) -> Result<Self, AppError> {
        for warning in &settings.warnings {
            tracing::warn!("{warning}");
        }
        let info = ServerInfo::new(&settings);
        let console = ConsoleLinks::for_run(&settings);
        if let Some(links) = &console {
            settings.api_keys = links.api_keys();
        }
        let mut registry = Registry::default();
        register_process(&mut registry);
        let own = registry.sub_registry_with_prefix("threadkeep");
        let http_metrics = HttpMetrics::register(own);
        let connections = Connections::register(own);

        let backend = store::open(&settings.store).await?;
        let stats = Stats::default();
        let (tracer, traces) = Traces::start(settings.traces.as_ref(), stats.id(), own);
        let backend: Arc<dyn Backend> = Arc::new(ObservedStore::register(backend, own, &stats));
        let events = Events::start(Arc::clone(&backend), event_settings(&settings));
        stats.show(ServerLevels {
            has_redis: settings.store.redis_url.is_some(),
            store: Arc::clone(&backend) as _,
            connections: connections.clone(),
            events: Arc::clone(events.counters()),
        });
        register_events(own, events.counters());
        register_links(own, Arc::clone(&backend) as _);
        register_memory(own, Arc::clone(&backend) as _);
        register_read_cache(own, Arc::clone(&backend) as _);
        register_unreadable(own, Arc::clone(&backend) as _, events.counters());
        let has_rates = !settings.rates.are_off();
        let rates = Arc::default();
        if has_rates {
            register_rates(own, &rates);
        }
        let sockets = Arc::default();
        register_sockets(own, &sockets);
        let identity = identity(&settings);
        let ring = identity.ring();
        // a process with an embedded store does not have other replicas, so it does not share keys
        let status = match settings.store.redis_url {
            Some(_) => {
                events
                    .share_signing_keys(ring, settings.signing_key_wait)
                    .await?
            }
            None => Arc::default(),
        };
        register_signing(own, ring.clone(), status);
        register_log(own);
        register_jwks(own, settings.callers.jwks.clone());
        if let Some(jwks) = settings.callers.jwks.clone() {
            events.spawn_until_stopped(jwks.keep_fresh());
        }
        let responses = settings.models.as_ref().map(|models| {
            let metrics = ResponseMetrics::register(own);
            responses::start(&backend, &settings, models, metrics)
        });
        let (responses, responses_thread) = responses.transpose()?.unzip();
        if let Some(responses) = responses.clone() {
            register_running_responses(own, &responses);
            events.spawn_until_stopped(responses.sweep());
        }
        let registry = Arc::new(registry);
        let shared = Shared {
            webhooks: Webhooks::start(events.clone(), webhook_settings(&settings, tracer.clone())),
            events: events.clone(),
            identity,
            readiness: Readiness::default(),
            stats: stats.clone(),
            compressor: Compressor::default(),
            backend,
            waiting: Arc::default(),
            rates,
            sockets: Arc::clone(&sockets),
            responses,
            listed_settings: settings_list::of(&settings.provenance),
            settings: settings.clone(),
        };
        let readiness = shared.readiness.clone();
        if settings.store.redis_url.is_some() {
            let watching = store::watch(Arc::clone(&shared.backend), readiness.clone());
            events.spawn_until_stopped(watching);
        }
        let response_service = shared.responses.clone();
        let listener = Listener::bind(settings.listen);
        let listener = listener.map_err(|error| AppError::Listen(settings.listen, error))?;
        let address = listener.address();
        let origins = settings.cors.clone();
        let (metrics, public_metrics) = match settings.metrics_listen {
            None => (None, Some(registry)),
            Some(address) => {
                let served = metrics::serve(address, registry);
                let served = served.map_err(|error| AppError::Listen(address, error))?;
                (Some(served), None)
            }
        };
        let logs = RequestLogs {
            all: settings.log.requests,
            slow: settings.log.slow,
        };
        let links = console.clone();
        let app = move || {
            let worker = shared.worker();
            let recorder = stats.route_recorder();
            let observer = Observer::new(http_metrics.clone(), recorder, logs, tracer.clone());
            let has_cors = origins != CorsOrigins::None;
            // the middleware that is added last runs first: the observer measures all other middleware, and the
            // envelope also applies to preflight requests
            App::new()
                .wrap(from_fn(refuse_head))
                .wrap(Condition::new(has_cors, cors::middleware(&origins)))
                .wrap(Condition::new(has_rates, from_fn(count_by_address)))
                .wrap(from_fn(envelope))
                .wrap(observer.into_middleware())
                .configure(|config| worker.configure(config))
                .service(home::resource(&info))
                .configure(|config| console::configure(config, links.as_ref()))
                .configure(|config| {
                    if let Some(registry) = &public_metrics {
                        config.service(metrics::resource(Arc::clone(registry)));
                    }
                })
        };
        let largest_body_bytes = BODY_MAX_BYTES.max(settings.entries.max_bytes);
        let connection_settings = ConnectionSettings {
            workers: settings.workers.map(NonZeroUsize::get),
            max_connections: settings.worker_max_connections,
            body_memory: (settings.worker_max_body_bytes, largest_body_bytes),
            keep_alive: settings.keep_alive,
            // connections must stay open until the model responses are released, because clients are waiting for these
            // responses
            shutdown: match response_service {
                Some(_) => settings.shutdown + RELEASE_TIMEOUT,
                None => settings.shutdown,
            },
        };
        Ok(Self {
            address,
            server: listener.serve(&connection_settings, connections, app)?,
            metrics,
            events,
            sockets,
            responses: response_service,
            _responses_thread: responses_thread,
            console,
            readiness,
            traces,
            drain: settings.drain,
            shutdown: settings.shutdown,
        })
    }

    /// Returns the address that the server listens on. If the settings request any free port, returns the actual port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the one-time links to the console, or `None` if this run does not have such links.
    #[must_use]
    pub fn console(&self) -> Option<ConsoleLinks> {
        self.console.clone()
    }

    pub async fn run_until_signal(self) -> Result<(), AppError> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let stop = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        self.run_until_stopped(stop).await
    }

    /// Serves requests until `stop` resolves, and then shuts down. First, during the drain time, the server still
    /// accepts requests but reports that it is not ready.
    ///
    /// Then the server ends event streams, stops accepting connections, and waits for requests to finish, up to the
    /// shutdown time.
    pub async fn run_until_stopped(self, stop: impl Future<Output = ()>) -> Result<(), AppError> {
        tracing::info!(address = %self.address, "listening");
        let handle = self.server.handle();
        let metrics = self.metrics.map(|(address, server)| {
            tracing::info!(%address, "listening for metrics");
            let handle = server.handle();
            actix_web::rt::spawn(server);
            handle
        });
        let mut server = pin!(self.server);
        tokio::select! {
            served = &mut server => {
                self.events.shutdown().await;
                self.traces.shutdown().await;
                return Ok(served?);
            }
            () = stop => {}
        }
        tracing::info!("stopping");
        // serves clients that arrive before the load balancer notices
        self.readiness.leave();
        sleep(self.drain).await;
        // streams would otherwise run as long as their clients listen
        self.events.end_streams();
        timeout(self.shutdown, wait_for_sockets(&self.sockets))
            .await
            .ok();
        let responses = async {
            if let Some(responses) = &self.responses {
                responses.shutdown(self.shutdown).await;
            }
        };
        let (served, (), ()) = join3(server, handle.stop(true), responses).await;
        self.events.shutdown().await;
        self.traces.shutdown().await;
        if let Some(metrics) = metrics {
            metrics.stop(false).await;
        }
        tracing::info!("stopped");
        Ok(served?)
    }
}

impl fmt::Debug for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Application")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Waits for running requests that arrived over closed WebSockets. When the server stops, a worker without open
/// connections would cancel these requests.
async fn wait_for_sockets(sockets: &SocketCounters) {
    while sockets.left() > 0 {
        sleep(POLL_INTERVAL).await;
    }
}

fn event_settings(settings: &Settings) -> EventSettings {
    EventSettings {
        public_url: settings.public_url.clone(),
        session_events: settings.session_events,
        ..EventSettings::default()
    }
}

fn webhook_settings(settings: &Settings, tracer: Option<Tracer>) -> WebhookSettings {
    WebhookSettings {
        endpoints: settings.webhooks.clone(),
        allow_private: settings.webhook_allow_private,
        tracer,
        ..WebhookSettings::default()
    }
}

fn identity(settings: &Settings) -> Identity {
    let ring = settings
        .signing_keys
        .clone()
        .unwrap_or_else(KeyRing::random);
    let identity = Identity::new(ring, settings.cookie.clone())
        .trust(settings.proxies.clone())
        .allow_origins(settings.cors.named().iter().cloned());
    let identity = match own_origin(&settings.public_url) {
        Some(origin) => identity.at_origin(origin),
        None => identity,
    };
    let identity = match &settings.callers.provider {
        Some(provider) => identity.provide(Arc::clone(provider)),
        None => identity,
    };
    match &settings.callers.owners {
        Some(owners) => identity.own(owners.clone()),
        None => identity,
    }
}
