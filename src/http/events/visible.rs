//! Which events of an id a caller may see.

use actix_web::web;

use crate::domain::{Access, Event, EventKind, Life, ThreadId};
use crate::events::ThreadItem;
use crate::http::Api;
use crate::service::ServiceError;
use crate::store::StoreError;

/// The decision about an item of a stream.
pub(super) enum Verdict {
    Shown,
    /// It is of a life that the caller may not see, and the next one may not be.
    Hidden,
    /// The thread has another owner.
    Over,
}

/// A caller of the stream of an id, whose earlier lives may have been those of other owners.
pub(super) struct Viewer {
    api: web::Data<Api>,
    id: ThreadId,
    access: Access,
    /// The last life that was looked at, and whether the caller may see it.
    life: Option<(Life, bool)>,
}

impl Viewer {
    /// Returns the viewer for a caller that may read the current thread.
    pub(super) async fn of(
        api: web::Data<Api>,
        id: ThreadId,
        access: Access,
    ) -> Result<Self, ServiceError> {
        let mut viewer = Self {
            api,
            id,
            access,
            life: None,
        };
        if access != Access::All {
            let thread = viewer.api.owners.peek(&id, access).await?;
            viewer.life = thread.map(|thread| (thread.stamp.life, true));
        }
        Ok(viewer)
    }

    /// Whether the caller may see an item that is sent now.
    pub(super) async fn judge(&mut self, item: &ThreadItem) -> Result<Verdict, StoreError> {
        if self.access == Access::All {
            return Ok(Verdict::Shown);
        }
        let event = match item {
            ThreadItem::Event { event, .. } => Some(event),
            ThreadItem::Reset { .. } => None,
        };
        if let Some(event) = event
            && let EventKind::Rotated { to } = &event.kind
        {
            return Ok(shown_if(self.sees(to, event.life).await?));
        }
        let check = self.api.owners.check(&self.id, self.access);
        if !allowed(check.await)? {
            return Ok(Verdict::Over);
        }
        let sees = match event {
            Some(event) => self.sees_life_of(event).await?,
            None => true,
        };
        Ok(shown_if(sees))
    }

    /// The version that the thread has now; 0 if the caller may see none.
    pub(super) async fn version(&self) -> Result<u64, StoreError> {
        match self.api.owners.peek(&self.id, self.access).await {
            Ok(thread) => Ok(thread.map_or(0, |thread| thread.stamp.version)),
            Err(ServiceError::Store(error)) => Err(error),
            Err(_) => Ok(0),
        }
    }

    async fn sees_life_of(&mut self, event: &Event) -> Result<bool, StoreError> {
        match self.life {
            // a request about a thread that does not exist
            _ if event.life == Life::default() => Ok(true),
            Some((life, sees)) if life == event.life => Ok(sees),
            _ => {
                let sees = self.sees(&self.id, event.life).await?;
                self.life = Some((event.life, sees));
                Ok(sees)
            }
        }
    }

    async fn sees(&self, id: &ThreadId, life: Life) -> Result<bool, StoreError> {
        allowed(self.api.owners.check_life(id, life, self.access).await)
    }
}

fn shown_if(sees: bool) -> Verdict {
    if sees {
        Verdict::Shown
    } else {
        Verdict::Hidden
    }
}

fn allowed(check: Result<(), ServiceError>) -> Result<bool, StoreError> {
    match check {
        Ok(()) => Ok(true),
        Err(ServiceError::Store(error)) => Err(error),
        Err(_) => Ok(false),
    }
}
