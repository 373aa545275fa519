//! Where the calls of one request keep what nobody keeps for them.

use std::sync::Arc;

use crate::ScopeService;
use threadkeep_domain::scope::ScopeId;
use threadkeep_store::{Clock, PassingScope};

/// Scopes that are gone with the last handle, and the one of them that is used.
pub fn scratch(scopes: &ScopeService) -> (ScopeService, ScopeId) {
    let name = "request".parse().expect("the name is legal");
    let passing = PassingScope::new(Clock::system());
    (scopes.over(Arc::new(passing)), ScopeId::Tool(name))
}
