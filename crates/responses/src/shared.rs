use std::sync::Arc;

use tokio::runtime::Handle;

use crate::catalog::Catalog;
use crate::running::Running;
use crate::values::error::ResponseError;
use crate::values::items::response_of_item;
use crate::values::observer::ResponseObserver;
use crate::values::request::{FollowedResponse, Protocol, ResponseRequest};
use crate::values::stateless::StatelessTools;
use crate::values::stored::Stored as _;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{ResponseId, ResponseLimits};
use threadkeep_service::{ScopeService, ThreadService};
use threadkeep_store::{Backend, Clock, HistoryFrom, ResponseView, Responses, Scopes};

/// Number of newest items to search for an item that was added by a response.
const NEWEST_ITEMS: usize = 50;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) responses: Arc<dyn Responses>,
    pub(crate) scopes_store: Arc<dyn Scopes>,
    pub(crate) scopes: ScopeService,
    pub(crate) threads: ThreadService,
    pub(crate) limits: ResponseLimits,
    pub(crate) catalog: Catalog,
    pub(crate) stateless: Arc<dyn StatelessTools>,
    pub(crate) clock: Clock,
    pub(crate) observer: Arc<dyn ResponseObserver>,
    pub(crate) running: Arc<Running>,
    pub(crate) runtime: Handle,
    pub(crate) buckets: u16,
}

#[derive(Debug, Clone)]
pub struct ResponseStores {
    pub responses: Arc<dyn Responses>,
    pub scopes: Arc<dyn Scopes>,
    pub buckets: u16,
}

impl ResponseStores {
    #[must_use]
    pub fn of(backend: &Arc<dyn Backend>) -> Self {
        Self {
            responses: Arc::clone(backend) as _,
            scopes: Arc::clone(backend) as _,
            buckets: backend.buckets(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct ResponseSettings {
    pub limits: ResponseLimits,
    pub catalog: Catalog,
    pub stateless: Arc<dyn StatelessTools>,
    pub clock: Clock,
    pub observer: Arc<dyn ResponseObserver>,
}

impl Shared {
    pub(crate) fn new(
        stores: ResponseStores,
        threads: ThreadService,
        scopes: ScopeService,
        settings: ResponseSettings,
    ) -> Self {
        Self {
            responses: stores.responses,
            scopes_store: stores.scopes,
            scopes,
            threads,
            running: Arc::new(Running::new(&settings.limits)),
            limits: settings.limits,
            catalog: settings.catalog,
            stateless: settings.stateless,
            clock: settings.clock,
            observer: settings.observer,
            runtime: Handle::current(),
            buckets: stores.buckets,
        }
    }

    /// Returns a stored response and its request. Fails with [`ResponseError::NoResponse`] if the response belongs to a
    /// different protocol.
    pub(crate) async fn stored_response(
        &self,
        protocol: Protocol,
        id: &ResponseId,
    ) -> Result<(ResponseView, ResponseRequest), ResponseError> {
        let view = self.responses.get_response(id).await?;
        let view = view.ok_or(ResponseError::NoResponse)?;
        let request = ResponseRequest::read(&view.journal.request)?;
        match request.protocol == protocol {
            true => Ok((view, request)),
            false => Err(ResponseError::NoResponse),
        }
    }

    pub(crate) async fn later_than(
        &self,
        scope: &ScopeId,
        response: FollowedResponse,
    ) -> Result<Option<ResponseId>, ResponseError> {
        let newest = HistoryFrom::Before(u64::MAX);
        let page = self.scopes.history(scope, newest, NEWEST_ITEMS).await?;
        let mut items = page.items.iter();
        let last = items.find_map(|item| response_of_item(item.id.as_str()));
        let last =
            last.filter(|last| last.id != response.id && last.created_ms >= response.created_ms);
        Ok(last.map(|last| last.id))
    }
}
