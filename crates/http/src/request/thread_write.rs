use std::borrow::Cow;

use actix_web::HttpRequest;

use super::conditions::WriteConditions;
use super::extract::{Extract, extract};
use super::query::{NewThreadQuery, Parameters, Query};
use super::target::Target;
use crate::answer::ApiResult;
use threadkeep_service::{ScopeService, ThreadService};

#[derive(Debug)]
pub(crate) struct ThreadWrite<P = (), H = WriteConditions, Q = NewThreadQuery> {
    pub(crate) target: Target,
    pub(crate) path: P,
    pub(crate) headers: H,
    pub(crate) query: Q,
}

impl<P: Extract, H: Extract, Q: Parameters> ThreadWrite<P, H, Q> {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let target = Target::of(request)?;
        let (path, headers) = (P::of(request)?, H::of(request)?);
        let Query(query) = Query::of(request)?;
        Ok(Self {
            target,
            path,
            headers,
            query,
        })
    }
}

impl<P, H, Q: AsRef<NewThreadQuery>> ThreadWrite<P, H, Q> {
    pub(crate) fn threads(&self) -> Cow<'_, ThreadService> {
        self.target.new_threads(self.query.as_ref())
    }

    pub(crate) fn scopes(&self) -> Cow<'_, ScopeService> {
        self.target.scopes(self.query.as_ref())
    }
}

extract!([P: Extract, H: Extract, Q: Parameters] ThreadWrite<P, H, Q>);
