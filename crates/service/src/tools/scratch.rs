//! Temporary storage for the calls of one request.

use std::sync::Arc;

use crate::ScopeService;
use threadkeep_domain::scope::ScopeId;
use threadkeep_store::{Clock, PassingScope};

/// Creates a temporary store of scopes. Returns the service over that store and the id of the scope to use. The store
/// ends when the last copy of the service is dropped.
pub fn scratch(scopes: &ScopeService) -> (ScopeService, ScopeId) {
    let name = "request".parse().expect("the name is legal");
    let passing = PassingScope::new(Clock::system());
    (scopes.over(Arc::new(passing)), ScopeId::Tool(name))
}
