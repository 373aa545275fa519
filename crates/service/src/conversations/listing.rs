//! Lists an owner's conversations in pages, newest message first.
//!
//! The store sorts an owner's threads by their last write, which need not be a message. A thread's newest message is at
//! most [`MOVES_AFTER_MS`] newer than the time by which the store sorts the thread. A page is therefore read from the
//! top of the list until no thread further down can belong to the page.

use super::ranking::Ranking;
use super::{
    CONVERSATIONS_EXAMINED_MAX, ConversationPage, ConversationService, ListedConversation,
    PageStart, ReadLabel,
};
use crate::ServiceError;
use crate::attempts::in_time;
use threadkeep_domain::{Owner, OwnerTag, Thread, ThreadId};
use threadkeep_store::{MOVES_AFTER_MS, OwnedPosition, ThreadOrder};

/// Minimum and maximum number of threads to read per call. With the largest metadata, a call returns up to 8 MiB.
const FIRST_ROUND: usize = 32;
const LARGEST_ROUND: usize = 512;
/// Maximum number of times to reread the top of the list to find threads that moved up during a search.
const REREADS_MAX: usize = 3;

struct Search {
    owner: OwnerTag,
    label: ReadLabel,
    ranking: Ranking,
    examined: usize,
}

impl ConversationService {
    /// Lists up to `limit` conversations of an owner. Returns `None` if the page would require reading more than
    /// [`CONVERSATIONS_EXAMINED_MAX`] threads. Does not extend the threads' lifetimes.
    pub async fn list(
        &self,
        owner: &Owner,
        start: PageStart,
        limit: usize,
        label: ReadLabel,
    ) -> Result<Option<ConversationPage>, ServiceError> {
        let search = Search {
            owner: owner.tag(),
            label,
            ranking: Ranking::new(start, limit),
            examined: 0,
        };
        in_time(self.timeout, self.search(search)).await
    }

    async fn search(&self, mut search: Search) -> Result<Option<ConversationPage>, ServiceError> {
        let mut round = search.ranking.needed().clamp(FIRST_ROUND, LARGEST_ROUND);
        let (mut top, mut next, mut rounds) = (None, None, 0);
        loop {
            let (first, after) = self.read(&mut search, next, round).await?;
            top = top.or(first).or(after);
            (next, rounds) = (after, rounds + 1);
            let Some((ms, _)) = next else { break };
            if search.ranking.is_settled(ms.saturating_add(MOVES_AFTER_MS)) {
                break;
            }
            if search.examined >= CONVERSATIONS_EXAMINED_MAX {
                return Ok(None);
            }
            round = (2 * round).min(LARGEST_ROUND);
        }
        if rounds > 1 {
            self.catch_up(&mut search, top).await?;
        }
        let total = match next {
            None => search.ranking.seen(),
            Some(_) => self.owners.count_owned(search.owner).await?,
        };
        Ok(Some(search.ranking.into_page(total)))
    }

    /// Reads one page of the owner's list into `search`. Returns the position of the page's first thread, and the
    /// cursor for the next page.
    async fn read(
        &self,
        search: &mut Search,
        after: Option<OwnedPosition>,
        limit: usize,
    ) -> Result<(Option<OwnedPosition>, Option<OwnedPosition>), ServiceError> {
        let order = ThreadOrder::Updated;
        let page = self
            .owners
            .list_owned(search.owner, order, after.as_ref(), limit);
        let page = page.await?;
        let ids: Vec<ThreadId> = page.threads.iter().map(|((_, id), _)| *id).collect();
        let previews = self.owners.preview_histories(&ids, 0).await?;
        search.examined += ids.len();
        for (((_, id), thread), preview) in page.threads.iter().zip(previews) {
            // `None` if the thread has just ended
            if let Some(preview) = preview {
                let newest_ms = preview.newest_ms.unwrap_or(thread.created_ms);
                let found = listed(id, thread, preview.items, newest_ms, search.label);
                search.ranking.add(found);
            }
        }
        Ok((
            page.threads.first().map(|(position, _)| *position),
            page.next,
        ))
    }

    /// Reads the threads that moved above `top` during the search. The search may have missed them, because they moved
    /// from the unread part of the list to the part that had already been read.
    async fn catch_up(
        &self,
        search: &mut Search,
        mut top: Option<OwnedPosition>,
    ) -> Result<(), ServiceError> {
        for _ in 0..REREADS_MAX {
            let (mut new_top, mut next, mut rounds) = (None, None, 0);
            loop {
                let (first, after) = self.read(search, next, FIRST_ROUND).await?;
                new_top = new_top.or(first);
                next = after;
                rounds += 1;
                if next.is_none_or(|next| Some(next) <= top) {
                    break;
                }
            }
            if rounds == 1 {
                break;
            }
            top = new_top;
        }
        Ok(())
    }
}

fn listed(
    id: &ThreadId,
    thread: &Thread,
    messages: u64,
    newest_ms: u64,
    label: ReadLabel,
) -> ListedConversation {
    ListedConversation {
        thread: *id,
        label: label(id, &thread.metadata),
        messages,
        newest_ms,
        created_ms: thread.created_ms,
        updated_ms: thread.updated_ms,
    }
}
