//! Temporary storage for the calls of one request.

use std::sync::Arc;

use crate::ScopeService;
use threadkeep_domain::scope::ScopeId;
use threadkeep_store::{Clock, PassingScope};

/// Creates a temporary scope store. Returns a service that uses the store, and the id of the scope to use. The store is
/// freed when the last clone of the service is dropped.
pub fn scratch(scopes: &ScopeService) -> (ScopeService, ScopeId) {
    let name = "request".parse().expect("the name is legal");
    let passing = PassingScope::new(Clock::system());
    (scopes.over(Arc::new(passing)), ScopeId::Tool(name))
}
