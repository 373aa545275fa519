//! Where the calls of one request keep what nobody keeps for them.

use std::sync::Arc;

use crate::service::ScopeService;
use crate::store::{Clock, PassingScope};
use threadkeep_domain::scope::ScopeId;

/// Scopes that are gone with the last handle, and the one of them that is used.
pub(crate) fn scratch(scopes: &ScopeService) -> (ScopeService, ScopeId) {
    let name = "request".parse().expect("the name is legal");
    let passing = PassingScope::new(Clock::system());
    (scopes.over(Arc::new(passing)), ScopeId::Tool(name))
}
