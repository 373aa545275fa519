//! Which events of an id a caller may see.

use actix_web::web;

use crate::Api;
use threadkeep_domain::{Access, Event, EventKind, Life, ThreadId};
use threadkeep_events::ThreadItem;
use threadkeep_service::ServiceError;
use threadkeep_store::StoreError;

/// The decision about an item of a stream.
pub(super) enum Verdict {
    Shown,
    /// The item is of a life that the caller may not see. Later items may be visible.
    Hidden,
    /// The thread has another owner.
    Over,
}

/// A caller of the stream of an id, whose earlier lives may have been those of other owners.
pub(super) struct Viewer {
    api: web::Data<Api>,
    id: ThreadId,
    access: Access,
    /// The last life whose owner was found, and whether the caller may see it.
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
        // a request about a thread that does not exist has no life
        if event.life == Life::default() {
            return Ok(true);
        }
        let id = self.id;
        self.sees(&id, event.life).await
    }

    async fn sees(&mut self, id: &ThreadId, life: Life) -> Result<bool, StoreError> {
        if let Some((known, sees)) = self.life
            && known == life
        {
            return Ok(sees);
        }
        let owners = &self.api.owners;
        let sees = owners.sees_life(id, life, self.access).await?;
        // a life that has just expired gets its final state later
        if let Some(sees) = sees {
            self.life = Some((life, sees));
        }
        Ok(sees.unwrap_or(false))
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
