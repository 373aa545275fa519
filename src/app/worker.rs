use std::sync::Arc;

use actix_web::web::ServiceConfig;

use crate::config::Settings;
use threadkeep_events::Events;
use threadkeep_http::{Api, Compressor, Readiness, SettingObject};
use threadkeep_identity::Identity;
use threadkeep_protocols::agentuity::{Agentuity, SocketCounters};
use threadkeep_protocols::mcp::Mcp;
use threadkeep_protocols::modelrelay::ModelRelay;
use threadkeep_protocols::openai::OpenAi;
use threadkeep_protocols::use_agent::UseAgent;
use threadkeep_responses::ResponseService;
use threadkeep_service::rates::{RateCounters, RateGate};
use threadkeep_service::tools::Toolbox;
use threadkeep_service::{
    ArchiveService, CheckpointService, ConversationService, EffectService, ImageService,
    NamespaceService, OwnerService, RunService, ScopeService, SessionService, StateHandleService,
    ThreadService, TurnService, Waiting,
};
use threadkeep_stats::Stats;
use threadkeep_store::{Backend, Clock};
use threadkeep_webhooks::Webhooks;

#[derive(Debug, Clone)]
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) listed_settings: Arc<[SettingObject]>,
    pub(super) backend: Arc<dyn Backend>,
    pub(super) events: Events,
    pub(super) webhooks: Webhooks,
    pub(super) identity: Identity,
    pub(super) readiness: Readiness,
    pub(super) stats: Stats,
    pub(super) waiting: Arc<Waiting>,
    pub(super) rates: Arc<RateCounters>,
    pub(super) sockets: Arc<SocketCounters>,
    pub(super) responses: Option<ResponseService>,
    pub(super) compressor: Compressor,
}

pub(super) struct Worker {
    api: Api,
    agentuity: Agentuity,
    relay: ModelRelay,
    mcp: Mcp,
    use_agent: UseAgent,
    openai: OpenAi,
}

impl Shared {
    /// Builds the services of a worker. Must be called on the worker's own thread.
    pub(super) fn worker(&self) -> Worker {
        let backend = self.backend.for_worker();
        let api = self.api(&backend);
        let mcp = &self.settings.mcp;
        let timeout = self.settings.store.timeout;
        Worker {
            use_agent: UseAgent::new(
                &api,
                ConversationService::new(Arc::clone(&backend) as _, timeout),
            ),
            agentuity: Agentuity::new(&api, Arc::clone(&self.sockets)),
            relay: relay(&api, &backend, self.responses.clone()),
            openai: OpenAi::new(&api, self.settings.conversation_ttl, self.responses.clone()),
            mcp: Mcp::new(&api, mcp.allowed_hosts.clone(), mcp.allowed_origins.clone()),
            api,
        }
    }

    fn api(&self, backend: &Arc<dyn Backend>) -> Api {
        let settings = &self.settings;
        let timeout = settings.store.timeout;
        let service = ThreadService::new(Arc::clone(backend) as _, settings.policy, timeout)
            .limit_owners(Arc::clone(backend) as _, settings.max_threads_per_owner)
            .limit_rates(self.gate(backend));
        Api {
            turns: TurnService::new(
                Arc::clone(backend) as _,
                service.clone(),
                Arc::clone(&self.waiting),
            ),
            effects: EffectService::new(Arc::clone(backend) as _, service.clone()),
            checkpoints: CheckpointService::new(Arc::clone(backend) as _, service.clone()),
            scopes: ScopeService::new(
                Arc::clone(backend) as _,
                service.clone(),
                settings.scopes,
                timeout,
            ),
            archives: ArchiveService::new(Arc::clone(backend) as _, service.clone()),
            service,
            images: ImageService::new(
                Arc::clone(backend) as _,
                Arc::clone(backend) as _,
                settings.scopes,
            ),
            owners: OwnerService::new(Arc::clone(backend) as _, Arc::clone(backend) as _),
            namespaces: NamespaceService::new(Arc::clone(backend) as _, settings.entries),
            reserved_keys: settings.reserved_keys.clone(),
            events: self.events.clone(),
            webhooks: self.webhooks.clone(),
            identity: self.identity.clone(),
            api_keys: settings.api_keys.clone(),
            readiness: self.readiness.clone(),
            settings: Arc::clone(&self.listed_settings),
            stats: self.stats.clone(),
            compressor: self.compressor.clone(),
        }
    }

    fn gate(&self, backend: &Arc<dyn Backend>) -> RateGate {
        let rates = self.settings.rates;
        if rates.are_off() {
            return RateGate::default();
        }
        RateGate::new(
            Arc::clone(backend) as _,
            Arc::clone(backend) as _,
            rates,
            Arc::clone(&self.rates),
            self.settings.store.timeout,
        )
    }
}

impl Worker {
    /// Adds all paths to an app. The router tries the paths in the order in which they are added.
    pub(super) fn configure(&self, config: &mut ServiceConfig) {
        self.api.configure(config);
        self.agentuity.configure(config);
        self.relay.configure(config);
        self.mcp.configure(config);
        self.use_agent.configure(config);
        self.openai.configure(config);
    }
}

fn relay(api: &Api, backend: &Arc<dyn Backend>, responses: Option<ResponseService>) -> ModelRelay {
    let listings = || Arc::clone(backend) as _;
    let clock = Clock::system;
    ModelRelay {
        handles: StateHandleService::new(api.scopes.clone(), listings(), clock()),
        sessions: SessionService::new(api.scopes.clone(), listings(), clock()),
        runs: RunService::new(api.scopes.clone()),
        scopes: api.scopes.clone(),
        tools: Toolbox::new(api.scopes.clone()),
        responses,
        events: api.events.clone(),
        ring: api.identity.ring().clone(),
        api_keys: api.api_keys.clone(),
    }
}
