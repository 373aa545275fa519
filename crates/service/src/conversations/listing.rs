//! Pages of the list of an owner's conversations.
//!
//! The base is the owner's list by the last write, because a thread is written to at its newest message, or at most
//! [`MOVES_AFTER_MS`] before it. Other writes move threads up too, so a page is read from the top of that list until no
//! thread below can belong to it.

use super::ranking::Ranking;
use super::{
    CONVERSATIONS_LOOKED_AT, ConversationPage, ConversationService, ListedConversation, PageStart,
    ReadLabel,
};
use crate::ServiceError;
use crate::attempts::in_time;
use threadkeep_domain::{Owner, OwnerTag, Thread, ThreadId};
use threadkeep_store::{MOVES_AFTER_MS, OwnedPlace, ThreadOrder};

/// Threads that are read at once, at least and at most: with the largest metadata, the latter have 8 MiB.
const FIRST_ROUND: usize = 32;
const LARGEST_ROUND: usize = 512;
/// How often the top of the list is read again because threads moved up while the rest was read.
const CATCHING_UP: usize = 3;

/// A page that is being worked out.
struct Search {
    owner: OwnerTag,
    label: ReadLabel,
    ranking: Ranking,
    looked_at: usize,
}

impl ConversationService {
    /// Up to `limit` conversations of an owner. None: more threads would have to be looked at than
    /// [`CONVERSATIONS_LOOKED_AT`]. Listing is no use of the threads.
    ///
    /// # Errors
    /// [`ServiceError::Store`].
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
            looked_at: 0,
        };
        in_time(self.timeout, self.search(search)).await
    }

    async fn search(&self, mut search: Search) -> Result<Option<ConversationPage>, ServiceError> {
        let mut round = search.ranking.wanted().clamp(FIRST_ROUND, LARGEST_ROUND);
        let (mut top, mut next, mut rounds) = (None, None, 0);
        loop {
            let (first, after) = self.read(&mut search, next, round).await?;
            top = top.or(first).or(after);
            (next, rounds) = (after, rounds + 1);
            let Some((ms, _)) = next else { break };
            if search.ranking.is_settled(ms.saturating_add(MOVES_AFTER_MS)) {
                break;
            }
            if search.looked_at >= CONVERSATIONS_LOOKED_AT {
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

    /// Looks at some threads of the owner's list. Returns the first place, and that after which the list goes on.
    async fn read(
        &self,
        search: &mut Search,
        after: Option<OwnedPlace>,
        limit: usize,
    ) -> Result<(Option<OwnedPlace>, Option<OwnedPlace>), ServiceError> {
        let order = ThreadOrder::Updated;
        let page = self
            .owners
            .list_owned(search.owner, order, after.as_ref(), limit);
        let page = page.await?;
        let ids: Vec<ThreadId> = page.threads.iter().map(|((_, id), _)| *id).collect();
        let glances = self.owners.glance_histories(&ids, 0).await?;
        search.looked_at += ids.len();
        for (((_, id), thread), glance) in page.threads.iter().zip(glances) {
            // else it ended in between
            if let Some(glance) = glance {
                let newest_ms = glance.newest_ms.unwrap_or(thread.created_ms);
                let found = listed(id, thread, glance.items, newest_ms, search.label);
                search.ranking.add(found);
            }
        }
        Ok((page.threads.first().map(|(place, _)| *place), page.next))
    }

    /// Looks again at threads that moved above the place where the search began: they may have been below the places
    /// that were read before, and above those that were read later.
    async fn catch_up(
        &self,
        search: &mut Search,
        mut top: Option<OwnedPlace>,
    ) -> Result<(), ServiceError> {
        for _ in 0..CATCHING_UP {
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
