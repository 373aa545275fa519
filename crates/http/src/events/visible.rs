use actix_web::web;

use crate::Api;
use threadkeep_domain::{Access, Event, EventKind, Life, ThreadId};
use threadkeep_events::ThreadItem;
use threadkeep_service::ServiceError;
use threadkeep_store::StoreError;

pub(super) enum Verdict {
    Shown,
    /// The item belongs to a different owner and is hidden from the caller. Later items may be visible.
    Hidden,
    /// The caller may no longer access the thread. The stream ends.
    AccessLost,
}

/// A caller that reads the event stream of a thread id. After a thread has ended, a new thread with a different owner
/// can be created under the same id. Each of these threads is a life of the id.
pub(super) struct Viewer {
    api: web::Data<Api>,
    id: ThreadId,
    access: Access,
    /// The last life with a known owner, and whether the caller may see the events of that life.
    life: Option<(Life, bool)>,
}

impl Viewer {
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
            return Ok(Verdict::AccessLost);
        }
        let sees = match event {
            Some(event) => self.may_see_event(event).await?,
            None => true,
        };
        Ok(shown_if(sees))
    }

    pub(super) async fn version(&self) -> Result<u64, StoreError> {
        match self.api.owners.peek(&self.id, self.access).await {
            Ok(thread) => Ok(thread.map_or(0, |thread| thread.stamp.version)),
            Err(ServiceError::Store(error)) => Err(error),
            Err(_) => Ok(0),
        }
    }

    async fn may_see_event(&mut self, event: &Event) -> Result<bool, StoreError> {
        // events about a thread that does not exist have no life
        if event.life == Life::default() {
            return Ok(true);
        }
        let id = self.id;
        self.sees(&id, event.life).await
    }

    async fn sees(&mut self, id: &ThreadId, life: Life) -> Result<bool, StoreError> {
        if let Some((cached_life, sees)) = self.life
            && cached_life == life
        {
            return Ok(sees);
        }
        let owners = &self.api.owners;
        let sees = owners.sees_life(id, life, self.access).await?;
        // an unknown owner is not cached, because the owner of an expired thread becomes known later, when the archive
        // is written
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
