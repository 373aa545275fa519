use std::any::TypeId;
use std::fmt;
use std::sync::{Arc, MutexGuard, PoisonError};

use super::{RequestContext, TypedMap};

/// An extractor, provided by [`Threads`](super::Threads), that stores one value per type for a request. Cheap to clone.
///
/// Unlike actix-web's extensions, the values can be sent to other tasks, and remain available to tasks that run after
/// the response.
#[derive(Clone)]
pub struct RequestState(pub(super) Arc<RequestContext>);

impl RequestState {
    /// Stores a value, and returns the previous value of the same type.
    pub fn insert<T: Send + Sync + 'static>(&self, value: T) -> Option<Arc<T>> {
        let old = self.values().insert(TypeId::of::<T>(), Arc::new(value));
        old.and_then(|old| old.downcast().ok())
    }

    /// Returns the value of type `T`.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let value = self.values().get(&TypeId::of::<T>()).cloned();
        value.and_then(|value| value.downcast().ok())
    }

    /// Removes and returns the value of type `T`.
    pub fn remove<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let value = self.values().remove(&TypeId::of::<T>());
        value.and_then(|value| value.downcast().ok())
    }

    fn values(&self) -> MutexGuard<'_, TypedMap> {
        let values = self.0.request_state.lock();
        values.unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RequestState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestState")
            .field(&self.0.session)
            .finish()
    }
}
