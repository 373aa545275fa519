use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{ImageService, ServiceError};
use threadkeep_domain::{Access, Image, Owner, ThreadId};
use threadkeep_store::{OwnedPosition, Owners, StoreError, ThreadOrder};

/// Number of threads per call that lists threads.
const BATCH: usize = 100;

/// Cursor of an export: the position of the last exported thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportCursor {
    /// Position in the list of all threads, which is ordered by id.
    Thread(ThreadId),
    /// Position in the list of an owner's threads, which is ordered by creation time and id, newest first.
    Owned(OwnedPosition),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an export cursor is a thread id, or milliseconds, `-` and a thread id")]
pub struct ExportCursorError;

/// Iterates over the threads of an owner, or over all threads. Reads each thread on demand.
#[derive(Debug)]
pub struct Export {
    images: ImageService,
    owners: Arc<dyn Owners>,
    owner: Option<Owner>,
    /// Cursor for the next page of the list; `None` before the first page.
    after: Option<ExportCursor>,
    is_listed: bool,
    listed: VecDeque<(ExportCursor, ThreadId)>,
    done: Option<ExportCursor>,
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
        after: Option<ExportCursor>,
    ) -> Result<Self, ExportCursorError> {
        match (&owner, after) {
            (None, Some(ExportCursor::Owned(_))) | (Some(_), Some(ExportCursor::Thread(_))) => {
                return Err(ExportCursorError);
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
    pub fn cursor(&self) -> Option<ExportCursor> {
        self.done
    }

    /// Returns the next thread, or `None` at the end. Returns unreadable threads without their images, and skips
    /// threads that end during the export.
    pub async fn next(&mut self) -> Result<Option<Exported>, ServiceError> {
        loop {
            while let Some((cursor, id)) = self.listed.front().copied() {
                let is_included = |image: &Image| match &self.owner {
                    Some(owner) => image.thread.owner.as_ref() == Some(owner),
                    None => true,
                };
                let found = match self.images.export(&id, Access::All).await {
                    Err(ServiceError::Store(StoreError::Corrupt(_))) => Some(None),
                    image => image?.filter(is_included).map(Some),
                };
                self.listed.pop_front();
                self.done = Some(cursor);
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
                    Some(ExportCursor::Owned(position)) => Some(position),
                    _ => None,
                };
                let order = ThreadOrder::Created;
                let page = self
                    .owners
                    .list_owned(owner.tag(), order, after.as_ref(), BATCH)
                    .await?;
                let positions = page.threads.into_iter().map(|(position, _)| position);
                let listed = positions.map(|position| (ExportCursor::Owned(position), position.1));
                self.listed.extend(listed);
                page.next.map(ExportCursor::Owned)
            }
            (None, after) => {
                let after = match after {
                    Some(ExportCursor::Thread(id)) => Some(id),
                    _ => None,
                };
                let page = self.owners.list_threads(after.as_ref(), BATCH).await?;
                let ids = page.threads.into_iter().map(|(id, _)| id);
                self.listed
                    .extend(ids.map(|id| (ExportCursor::Thread(id), id)));
                page.next.map(ExportCursor::Thread)
            }
        };
        self.is_listed = next.is_none();
        self.after = next;
        Ok(())
    }
}

impl fmt::Display for ExportCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread(id) => id.fmt(f),
            Self::Owned((created_ms, id)) => write!(f, "{created_ms}-{id}"),
        }
    }
}

impl FromStr for ExportCursor {
    type Err = ExportCursorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = |text: &str| text.parse().map_err(|_| ExportCursorError);
        match text.split_once('-') {
            None => Ok(Self::Thread(id(text)?)),
            Some((created_ms, text)) => {
                let created_ms = created_ms.parse().map_err(|_| ExportCursorError)?;
                Ok(Self::Owned((created_ms, id(text)?)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_round_trips_through_its_text() {
        let id = ThreadId::random();
        for cursor in [ExportCursor::Thread(id), ExportCursor::Owned((7, id))] {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for bad in [
            "",
            "-",
            "7",
            "7-",
            "x-thrd_",
            "-1-thrd_0123456789abcdef0123456789abcdef",
        ] {
            assert_eq!(bad.parse::<ExportCursor>(), Err(ExportCursorError), "{bad}");
        }
    }
}
