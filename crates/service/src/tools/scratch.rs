//! Temporary storage for the calls of one request.

use std::sync::Arc;

use crate::ScopeService;
use threadkeep_domain::scope::ScopeId;
use threadkeep_store::{Clock, PassingScope};

/// Creates scopes that end with the last handle, and returns the one to use.
pub fn scratch(scopes: &ScopeService) -> (ScopeService, ScopeId) {
    let name = "request".parse().expect("the name is legal");
    let passing = PassingScope::new(Clock::system());
    (scopes.over(Arc::new(passing)), ScopeId::Tool(name))
}
