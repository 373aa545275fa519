mod thread;

use std::sync::Arc;

use crate::config::{ModelSettings, OnlineSettings, Settings, UpstreamKind, UpstreamSetting};
use threadkeep_online::{ImageSettings, OnlineTools};
use threadkeep_responses::{
    Catalog, CatalogEntry, Model, ResponseObserver, ResponseService, ResponseSettings,
    ResponseStores,
};
use threadkeep_service::{ScopeService, ThreadService};
use threadkeep_store::{Backend, Clock};
use threadkeep_upstreams::{
    AnthropicMessages, HttpClient, OpenAiChat, OpenAiResponses, UpstreamSettings,
};

use super::AppError;
pub(super) use thread::ResponsesThread;

/// Starts the service and the thread for model responses, and an HTTP client for model providers (upstreams). Fails
/// with [`AppError::Upstream`] if the client rejects the settings of an upstream.
pub(super) fn start(
    backend: &Arc<dyn Backend>,
    server_settings: &Settings,
    settings: &ModelSettings,
    observer: Arc<dyn ResponseObserver>,
) -> Result<(ResponseService, ResponsesThread), AppError> {
    let thread = ResponsesThread::start()?;
    let backend = &backend.for_responses(thread.runtime().clone());
    let timeout = server_settings.store.timeout;
    let threads = ThreadService::new(Arc::clone(backend) as _, server_settings.policy, timeout);
    let scopes = ScopeService::new(
        Arc::clone(backend) as _,
        threads.clone(),
        server_settings.scopes,
        timeout,
    );
    let http = HttpClient::new();
    let mut upstreams = Vec::with_capacity(settings.upstreams.len());
    for upstream in &settings.upstreams {
        upstreams.push((&upstream.name, model(&http, settings, upstream)?));
    }
    let stateless = Arc::new(online(&http, settings)?);
    let entries = settings.models.iter().filter_map(|model| {
        let (_, upstream) = upstreams
            .iter()
            .find(|(name, _)| **name == model.upstream)?;
        Some(CatalogEntry {
            name: model.pattern.clone(),
            upstream_model: model.upstream_model.clone(),
            upstream_name: model.upstream.as_str().into(),
            upstream: Arc::clone(upstream),
        })
    });
    let responses = ResponseSettings {
        limits: settings.limits,
        catalog: Catalog::new(entries.collect()),
        stateless,
        clock: Clock::system(),
        observer,
    };
    let _entered = thread.runtime().enter();
    let stores = ResponseStores::of(backend);
    Ok((
        ResponseService::start(stores, threads, scopes, responses),
        thread,
    ))
}

fn model(
    http: &HttpClient,
    settings: &ModelSettings,
    upstream: &UpstreamSetting,
) -> Result<Arc<dyn Model>, AppError> {
    let upstream_settings = upstream_settings(settings, upstream)?;
    Ok(match upstream.kind {
        UpstreamKind::OpenAiChat => Arc::new(OpenAiChat::new(http, &upstream_settings)),
        UpstreamKind::OpenAiResponses => Arc::new(OpenAiResponses::new(http, &upstream_settings)),
        UpstreamKind::Anthropic => {
            let max_output_tokens = settings.upstream_max_output_tokens;
            Arc::new(AnthropicMessages::new(
                http,
                &upstream_settings,
                max_output_tokens,
            ))
        }
    })
}

fn online(http: &HttpClient, settings: &ModelSettings) -> Result<OnlineTools, AppError> {
    let OnlineSettings {
        search,
        fetch,
        images,
    } = settings.online.clone();
    let images = images.and_then(|images| {
        let mut upstreams = settings.upstreams.iter();
        let upstream = upstreams.find(|upstream| upstream.name == images.upstream)?;
        Some(
            upstream_settings(settings, upstream).map(|upstream| ImageSettings {
                http: http.clone(),
                upstream,
                model: images.model,
            }),
        )
    });
    Ok(OnlineTools::new(search, fetch, images.transpose()?))
}

fn upstream_settings(
    settings: &ModelSettings,
    upstream: &UpstreamSetting,
) -> Result<UpstreamSettings, AppError> {
    let refuse = |error: Box<dyn std::error::Error + Send + Sync>| {
        AppError::Upstream(upstream.name.clone(), error)
    };
    let key = upstream.key.as_deref().map(str::parse).transpose();
    Ok(UpstreamSettings {
        name: upstream.name.clone(),
        url: upstream
            .url
            .parse()
            .map_err(|error| refuse(Box::new(error)))?,
        key: key.map_err(|error| refuse(Box::new(error)))?,
        timeout: settings.upstream_timeout,
        retries: settings.upstream_retries,
        max_answer_bytes: settings.limits.max_bytes,
    })
}
