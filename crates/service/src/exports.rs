use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{ImageService, ServiceError};
use threadkeep_domain::{Access, Image, Owner, ThreadId};
use threadkeep_store::{OwnedPlace, Owners, StoreError, ThreadOrder};

/// Number of threads per call that lists threads.
const AT_ONCE: usize = 100;

/// Cursor of an export: the position of the last exported thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportPlace {
    /// Position in the list of all threads, which is ordered by id.
    Thread(ThreadId),
    /// Position in the list of an owner's threads, which is ordered by creation time and id, newest first.
    Owned(OwnedPlace),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a place of an export is a thread id, or milliseconds, `-` and a thread id")]
pub struct ExportPlaceError;

/// Iterates over the threads of an owner, or over all threads. Reads each thread on demand.
#[derive(Debug)]
pub struct Export {
    images: ImageService,
    owners: Arc<dyn Owners>,
    owner: Option<Owner>,
    /// Cursor for the next page of the list; `None` before the first page.
    after: Option<ExportPlace>,
    is_listed: bool,
    listed: VecDeque<(ExportPlace, ThreadId)>,
    done: Option<ExportPlace>,
}

#[derive(Debug)]
pub struct Exported {
    pub id: ThreadId,
    /// `None` if the store cannot read the thread.
    pub image: Option<Image>,
}

impl Export {
    /// Begins an export that continues after the cursor `after`. Fails if `after` is a cursor for a different list.
    pub(super) fn new(
        images: ImageService,
        owners: Arc<dyn Owners>,
        owner: Option<Owner>,
        after: Option<ExportPlace>,
    ) -> Result<Self, ExportPlaceError> {
        match (&owner, after) {
            (None, Some(ExportPlace::Owned(_))) | (Some(_), Some(ExportPlace::Thread(_))) => {
                return Err(ExportPlaceError);
            }
            _ => {}
        }
        Ok(Self {
            images,
            owners,
            owner,
            after,
            is_listed: false,
            listed: VecDeque::new(),
            done: after,
        })
    }

    /// Returns the cursor to resume from; `None` at the beginning.
    #[must_use]
    pub fn place(&self) -> Option<ExportPlace> {
        self.done
    }

    /// Returns the next thread, or `None` at the end. Includes unreadable threads, and skips threads that end during
    /// the export.
    pub async fn next(&mut self) -> Result<Option<Exported>, ServiceError> {
        loop {
            while let Some((place, id)) = self.listed.front().copied() {
                let is_wanted = |image: &Image| match &self.owner {
                    Some(owner) => image.thread.owner.as_ref() == Some(owner),
                    None => true,
                };
                let found = match self.images.export(&id, Access::All).await {
                    Err(ServiceError::Store(StoreError::Corrupt(_))) => Some(None),
                    image => image?.filter(is_wanted).map(Some),
                };
                self.listed.pop_front();
                self.done = Some(place);
                if let Some(image) = found {
                    return Ok(Some(Exported { id, image }));
                }
            }
            if self.is_listed {
                return Ok(None);
            }
            self.list().await?;
        }
    }

    async fn list(&mut self) -> Result<(), ServiceError> {
        let next = match (&self.owner, self.after) {
            (Some(owner), after) => {
                let after = match after {
                    Some(ExportPlace::Owned(place)) => Some(place),
                    _ => None,
                };
                let order = ThreadOrder::Created;
                let page = self
                    .owners
                    .list_owned(owner.tag(), order, after.as_ref(), AT_ONCE)
                    .await?;
                let places = page.threads.into_iter().map(|(place, _)| place);
                let places = places.map(|place| (ExportPlace::Owned(place), place.1));
                self.listed.extend(places);
                page.next.map(ExportPlace::Owned)
            }
            (None, after) => {
                let after = match after {
                    Some(ExportPlace::Thread(id)) => Some(id),
                    _ => None,
                };
                let page = self.owners.list_threads(after.as_ref(), AT_ONCE).await?;
                let ids = page.threads.into_iter().map(|(id, _)| id);
                self.listed
                    .extend(ids.map(|id| (ExportPlace::Thread(id), id)));
                page.next.map(ExportPlace::Thread)
            }
        };
        self.is_listed = next.is_none();
        self.after = next;
        Ok(())
    }
}

impl fmt::Display for ExportPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread(id) => id.fmt(f),
            Self::Owned((created_ms, id)) => write!(f, "{created_ms}-{id}"),
        }
    }
}

impl FromStr for ExportPlace {
    type Err = ExportPlaceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = |text: &str| text.parse().map_err(|_| ExportPlaceError);
        match text.split_once('-') {
            None => Ok(Self::Thread(id(text)?)),
            Some((created_ms, text)) => {
                let created_ms = created_ms.parse().map_err(|_| ExportPlaceError)?;
                Ok(Self::Owned((created_ms, id(text)?)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_back_from_its_text() {
        let id = ThreadId::random();
        for place in [ExportPlace::Thread(id), ExportPlace::Owned((7, id))] {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for bad in [
            "",
            "-",
            "7",
            "7-",
            "x-thrd_",
            "-1-thrd_0123456789abcdef0123456789abcdef",
        ] {
            assert_eq!(bad.parse::<ExportPlace>(), Err(ExportPlaceError), "{bad}");
        }
    }
}
