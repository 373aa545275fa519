use std::borrow::Cow;

use actix_web::HttpMessage;
use uuid::Builder;

use super::naming::thread_id_of;
use super::{UseAgent, UseAgentError};
use crate::frame::Admitted;
use threadkeep_domain::{Owner, ThreadId};
use threadkeep_http::{About, Api, Parameters, Query, Repeatable, idempotency, path_part, text_of};
use threadkeep_service::{ScopeService, ThreadService, WriteOptions};

/// Index of the path segment that names the thread in `/api/threads/{threadId}`.
const THREAD_INDEX: usize = 3;

pub(super) type UseAgentRequest = Admitted<UseAgent>;

impl UseAgentRequest {
    fn api(&self) -> &Api {
        &self.protocol.api
    }

    /// Returns a service that gives a user access only to the user's own threads and to threads without an owner.
    pub(super) fn threads(&self) -> Cow<'_, ThreadService> {
        self.api().threads_for(&self.caller.behalf())
    }

    pub(super) fn scopes(&self) -> Cow<'_, ScopeService> {
        self.api().scopes_for(&self.caller.behalf())
    }

    pub(super) fn owner(
        &self,
        user_id: Option<&str>,
        channel_key: Option<&str>,
    ) -> Result<Owner, UseAgentError> {
        let caller = &self.caller;
        caller.owner(&self.request, self.api(), user_id, channel_key)
    }

    /// Returns the name and id of the thread in the path.
    pub(super) fn thread(&self) -> Result<(String, ThreadId), UseAgentError> {
        let name = path_part(&self.request, THREAD_INDEX).ok_or(UseAgentError::ThreadName)?;
        let id = self.thread_of(&name)?;
        Ok((name.into_owned(), id))
    }

    /// Returns the id of the thread with this name, and records that the request is about that thread.
    pub(super) fn thread_of(&self, name: &str) -> Result<ThreadId, UseAgentError> {
        let id = thread_id_of(name).ok_or(UseAgentError::ThreadName)?;
        self.request.extensions_mut().insert(About(id));
        Ok(id)
    }

    pub(super) fn query<P: Parameters>(&self) -> Result<P, UseAgentError> {
        let Query(parameters) = Query::of(&self.request)?;
        Ok(parameters)
    }

    pub(super) fn text(&self) -> Result<&str, UseAgentError> {
        Ok(text_of(self.body.bytes()?)?)
    }

    pub(super) fn options(&self) -> Result<WriteOptions, UseAgentError> {
        let repeatable = Repeatable::with_body(&self.request, self.body.bytes()?)?;
        Ok(repeatable.options(None))
    }

    /// Generates a UUID as the name of a new thread. A repeated request with the same idempotency key gets the same
    /// name.
    pub(super) fn generate_name(&self) -> Result<String, UseAgentError> {
        let digits = match idempotency(&self.request, self.body.bytes()?)? {
            Some((key, _)) => {
                let [kind, name] = self.caller.key_namespace().map(str::as_bytes);
                let ring = self.api().identity.ring();
                ring.digest(
                    "threadkeep made by use-agent",
                    &[kind, name, key.as_bytes()],
                )
            }
            None => rand::random(),
        };
        Ok(Builder::from_random_bytes(digits).into_uuid().to_string())
    }
}
