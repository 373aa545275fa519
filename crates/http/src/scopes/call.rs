use std::borrow::Cow;

use actix_web::{HttpMessage, HttpRequest, web};
use serde::Deserialize;
use serde::de::Error as _;

use crate::Api;
use crate::answer::{ApiResult, accepts_json};
use crate::request::{
    About, BodyFault, Extract, JsonBody, Nothing, Query, behalf, body_object, extract, invalid,
    key_for, read,
};
use threadkeep_domain::scope::{Scope, ScopeError, ScopeId};
use threadkeep_domain::{Json, ThreadId, member};
use threadkeep_service::ScopeService;
use threadkeep_service::tools::Toolbox;
use threadkeep_web::ApiError;

const SCOPE: &str = "scope";
/// Scope of the caller's own thread.
const CURRENT: &str = "thread:current";

/// A request whose body names a scope. Scopes are accessible only through this extractor.
///
/// An API key gives access to all scopes. Other callers may use only the scope of their own thread, as `thread:current`
/// or by its id, if they prove that the thread is theirs. All other requests fail with the same error.
///
/// `H` is `()` for reads and `Repeatable` for writes. `AROUND` is the number of nesting levels around a value in the
/// body.
#[derive(Debug)]
pub(crate) struct ScopeCall<const AROUND: usize, H = ()> {
    pub(crate) headers: H,
    api: web::Data<Api>,
    request: HttpRequest,
    body: Json,
}

impl<const AROUND: usize, H: Extract> ScopeCall<AROUND, H> {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let api = request
            .app_data::<web::Data<Api>>()
            .ok_or(ApiError::NotFound)?;
        accepts_json(request)?;
        let headers = H::of(request)?;
        Query::<Nothing>::of(request)?;
        let body = JsonBody::of(request)?;
        Ok(Self {
            headers,
            api: api.clone(),
            request: request.clone(),
            body: body_object(body.as_str(), AROUND)?,
        })
    }

    pub(crate) fn scopes(&self) -> ApiResult<Cow<'_, ScopeService>> {
        Ok(self.api.scopes_for(&behalf(&self.api, &self.request)?))
    }

    pub(crate) fn tools(&self) -> ApiResult<Toolbox> {
        Ok(Toolbox::new(self.scopes()?.into_owned()))
    }

    /// Returns the scope that the body names, and the parsed body. Checks access to the scope before parsing the body.
    /// If the body does not name a scope, the scope is `request`.
    pub(crate) fn open<'a, B: Deserialize<'a>>(&'a self) -> ApiResult<(Scope, B)> {
        Ok((self.scope()?, read(&self.body)?))
    }

    /// Like [`Self::open`], but requires a stored scope. Fails if the body names the scope `request` or no scope.
    pub(super) fn open_stored<'a, B: Deserialize<'a>>(&'a self) -> ApiResult<(ScopeId, B)> {
        let scope = match self.scope()? {
            Scope::Kept(scope) => scope,
            Scope::Request if member(self.body.as_str(), SCOPE).is_none() => {
                return Err(BodyFault::missing_field(SCOPE).into());
            }
            Scope::Request => {
                return Err(invalid(
                    "`request` keeps nothing, so there is nothing to read or write",
                ));
            }
        };
        Ok((scope, read(&self.body)?))
    }

    fn scope(&self) -> ApiResult<Scope> {
        let scope = member(self.body.as_str(), SCOPE);
        let text = scope.map_or_else(|| Ok("request".into()), serde_json::from_str::<String>);
        if text.as_ref().is_ok_and(|text| text == CURRENT) {
            return self.current().map(Scope::from);
        }
        let scope = text
            .map_err(|_| ScopeError::Kind)
            .and_then(|text| text.parse::<Scope>());
        let thread = match &scope {
            Ok(Scope::Kept(scope)) => scope.thread().copied(),
            _ => None,
        };
        if let Err(refusal) = key_for(&self.request, &self.api)
            && (thread.is_none() || thread != self.proven_thread())
        {
            return Err(refusal);
        }
        if let Some(thread) = thread {
            self.request.extensions_mut().insert(About(thread));
        }
        Ok(scope?)
    }

    /// Returns the scope of the caller's own thread. Stores the caller for the response, which names the thread.
    fn current(&self) -> ApiResult<ScopeId> {
        let caller = self.api.identity.identify(&self.request)?;
        let id = caller.id;
        self.request.extensions_mut().insert(caller);
        Ok(ScopeId::Thread(id))
    }

    fn proven_thread(&self) -> Option<ThreadId> {
        let caller = self.api.identity.proven_caller(&self.request);
        caller.map(|caller| caller.id)
    }
}

extract!([const AROUND: usize, H: Extract] ScopeCall<AROUND, H>);
