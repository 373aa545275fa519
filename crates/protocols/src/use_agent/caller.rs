use std::sync::Arc;

use actix_web::HttpRequest;

use super::UseAgentError;
use threadkeep_domain::{Owner, Refusal, Thread};
use threadkeep_http::{Api, key_for, no_key, own};
use threadkeep_identity::Behalf;
use threadkeep_service::ServiceError;
use threadkeep_web::ApiError;

/// Prefix of owners that stand for channels.
const CHANNEL: &str = "channel:";

#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// A caller with an API key. The string is the key's name. Such a caller may act for any owner.
    BackEnd(Arc<str>),
    /// A user. Users may access only their own threads.
    User(Owner),
}

impl Caller {
    /// Identifies the caller by an API key with the required right, or as a user.
    pub(super) fn of(request: &HttpRequest, api: &Api) -> Result<Self, UseAgentError> {
        let refusal = match key_for(request, api) {
            Ok(key) => return Ok(Self::BackEnd(key.name)),
            Err(refusal @ ApiError::RightMissing { .. }) => return Err(refusal.into()),
            Err(refusal) => refusal,
        };
        let owner = own(request, api, refusal)?;
        match is_channel(owner.as_str()) {
            true => Err(channel_as_user()),
            false => Ok(Self::User(owner)),
        }
    }

    pub(super) fn behalf(&self) -> Behalf {
        match self {
            Self::BackEnd(_) => Behalf::Anyone,
            Self::User(owner) => Behalf::Caller(Some(owner.clone())),
        }
    }

    /// Returns the namespace of this caller's idempotency keys.
    pub(super) fn key_namespace(&self) -> [&str; 2] {
        match self {
            Self::BackEnd(name) => ["key", name],
            Self::User(owner) => ["owner", owner.as_str()],
        }
    }

    /// Returns the owner that `user_id` or `channel_key` names. Users can name only themselves. A caller with an API
    /// key must name an owner.
    pub(super) fn owner(
        &self,
        request: &HttpRequest,
        api: &Api,
        user_id: Option<&str>,
        channel_key: Option<&str>,
    ) -> Result<Owner, UseAgentError> {
        match (self, user_id, channel_key) {
            (Self::User(own), Some(user_id), _) if user_id != own.as_str() => {
                Err(UseAgentError::not_the_owner())
            }
            (Self::User(own), Some(_), _) | (Self::User(own), None, None) => Ok(own.clone()),
            (Self::User(_), None, Some(_)) => Err(no_key(request, &api.identity).into()),
            (Self::BackEnd(_), Some(user_id), _) if is_channel(user_id) => Err(channel_as_user()),
            (Self::BackEnd(_), Some(user_id), _) => owner_named(user_id, "userId", 256),
            (Self::BackEnd(_), None, Some(key)) => {
                owner_named(&format!("{CHANNEL}{key}"), "channelKey", 248)
            }
            (Self::BackEnd(_), None, None) => Err(UseAgentError::invalid(
                "`userId` or `channelKey` must say whose threads these are",
            )),
        }
    }

    /// Checks that the caller may use a thread. Users may not use threads without an owner, because thread names are
    /// not secret and any user could then use such a thread.
    pub(super) fn check(&self, thread: &Thread) -> Result<(), ServiceError> {
        match self {
            Self::User(own) if thread.owner.as_ref() != Some(own) => {
                Err(Refusal::NotTheOwner.into())
            }
            _ => Ok(()),
        }
    }
}

fn is_channel(user_id: &str) -> bool {
    user_id.starts_with(CHANNEL)
}

fn channel_as_user() -> UseAgentError {
    UseAgentError::invalid(format!("A user id must not begin with `{CHANNEL}`"))
}

fn owner_named(text: &str, member: &str, max_bytes: usize) -> Result<Owner, UseAgentError> {
    let has_text = text != CHANNEL;
    let owner = Owner::new(text).ok().filter(|_| has_text);
    owner.ok_or_else(|| {
        UseAgentError::invalid(format!(
            "`{member}` must be a text of 1 to {max_bytes} bytes without control characters"
        ))
    })
}
