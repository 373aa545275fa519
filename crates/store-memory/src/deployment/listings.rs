use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::task::yield_now;

use crate::MemoryStore;
use crate::budget::Part;
use threadkeep_domain::heap;
use threadkeep_domain::heap::Heap;
use threadkeep_store::{Listing, Listings, StoreError};

/// Maximum number of members skipped under one lock. Skipping that many takes about half a millisecond.
const SKIP_MAX: u64 = 10_000;

/// Lists of objects, by list name. One lock is enough, because objects are created far less often than written.
#[derive(Debug, Default)]
pub(crate) struct Lists(HashMap<String, List>);

type ListPosition = (u64, Arc<str>);
type ListPositions = BTreeSet<ListPosition>;

enum ListPart {
    Members(Vec<String>),
    /// The offset has not been reached yet. Continue after this position.
    After(ListPosition),
}

#[derive(Debug, Default)]
struct List {
    /// A tree, because a hash table with a million members takes 0.1 s to grow.
    members: BTreeMap<Arc<str>, Member>,
    all: ListPositions,
    of_owners: BTreeMap<Arc<str>, ListPositions>,
    due: ListPositions,
    heap_bytes: u64,
}

#[derive(Debug)]
struct Member {
    at_ms: u64,
    check_ms: u64,
    owner: Option<Arc<str>>,
}

impl Lists {
    pub(crate) fn len(&self) -> usize {
        self.0.values().map(|list| list.members.len()).sum()
    }

    /// Returns the page of members that starts `offset` members after `after`. If `offset` exceeds [`SKIP_MAX`],
    /// returns the position [`SKIP_MAX`] members after `after` instead.
    fn page(
        &self,
        listing: &Listing<'_>,
        after: Option<ListPosition>,
        offset: u64,
        limit: usize,
    ) -> ListPart {
        let list = self.0.get(listing.name);
        let positions = list.and_then(|list| match listing.owner {
            Some(owner) => list.of_owners.get(owner),
            None => Some(&list.all),
        });
        let older = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = (Bound::Unbounded, older);
        let positions = positions.into_iter();
        let mut newest = positions.flat_map(|positions| positions.range(range.clone()).rev());
        if offset > SKIP_MAX {
            return match newest.nth(SKIP_MAX as usize - 1) {
                Some(position) => ListPart::After(position.clone()),
                None => ListPart::Members(Vec::new()),
            };
        }
        let page = newest.skip(offset as usize).take(limit);
        ListPart::Members(page.map(|(_, member)| member.as_ref().to_owned()).collect())
    }
}

impl List {
    fn add(&mut self, member: &str, owner: Option<&str>, at_ms: u64, check_ms: u64) {
        if self.members.contains_key(member) {
            return;
        }
        let name: Arc<str> = member.into();
        let owner: Option<Arc<str>> = owner.map(Into::into);
        self.all.insert((at_ms, Arc::clone(&name)));
        self.due.insert((check_ms, Arc::clone(&name)));
        if let Some(owner) = &owner {
            let part = self.of_owners.entry(Arc::clone(owner)).or_default();
            let before = tree_bytes(part);
            part.insert((at_ms, Arc::clone(&name)));
            self.heap_bytes += tree_bytes(part) - before;
        }
        let member = Member {
            at_ms,
            check_ms,
            owner,
        };
        self.heap_bytes += member.held_bytes(&name);
        self.members.insert(name, member);
    }

    fn remove(&mut self, member: &str) {
        let Some((name, member)) = self.members.remove_entry(member) else {
            return;
        };
        self.heap_bytes -= member.held_bytes(&name);
        self.due.remove(&(member.check_ms, Arc::clone(&name)));
        let position = (member.at_ms, name);
        self.all.remove(&position);
        if let Some(owner) = member.owner
            && let Some(part) = self.of_owners.get_mut(&owner)
        {
            let before = tree_bytes(part);
            part.remove(&position);
            self.heap_bytes -= before - tree_bytes(part);
            if part.is_empty() {
                self.of_owners.remove(&owner);
            }
        }
    }

    fn reschedule(&mut self, member: &str, check_ms: u64) {
        let Some((name, _)) = self.members.get_key_value(member) else {
            return;
        };
        let name = Arc::clone(name);
        if let Some(member) = self.members.get_mut(&name) {
            self.due.remove(&(member.check_ms, Arc::clone(&name)));
            member.check_ms = check_ms;
            self.due.insert((check_ms, name));
        }
    }
}

impl Member {
    fn held_bytes(&self, name: &str) -> u64 {
        let text = |text: &str| heap::block(2 * size_of::<usize>() + text.len());
        text(name) + self.owner.as_deref().map_or(0, text)
    }
}

fn tree_bytes(positions: &ListPositions) -> u64 {
    heap::tree::<(u64, Arc<str>)>(positions.len())
}

impl Heap for List {
    fn heap_bytes(&self) -> u64 {
        heap::tree::<(Arc<str>, Member)>(self.members.len())
            + tree_bytes(&self.all)
            + tree_bytes(&self.due)
            + heap::tree::<(Arc<str>, ListPositions)>(self.of_owners.len())
            + self.heap_bytes
    }
}

/// The size is computed on each call, because there is only one list per kind of object.
impl Heap for Lists {
    fn heap_bytes(&self) -> u64 {
        self.0.values().map(Heap::heap_bytes).sum()
    }
}

impl Part for Lists {}

#[async_trait]
impl Listings for MemoryStore {
    async fn list_add(
        &self,
        listing: &Listing<'_>,
        member: &str,
        at_ms: u64,
        check_ms: u64,
    ) -> Result<(), StoreError> {
        self.0.admit()?;
        let mut lists = self.0.lists();
        let list = lists.0.entry(listing.name.to_owned()).or_default();
        list.add(member, listing.owner, at_ms, check_ms);
        Ok(())
    }

    async fn list_page(
        &self,
        listing: &Listing<'_>,
        offset: u64,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let (mut offset, mut after) = (offset, None);
        loop {
            let page = self.0.lists().page(listing, after, offset, limit);
            match page {
                ListPart::Members(members) => return Ok(members),
                ListPart::After(position) => after = Some(position),
            }
            offset -= SKIP_MAX;
            yield_now().await;
        }
    }

    async fn list_remove(&self, name: &str, members: &[String]) -> Result<(), StoreError> {
        let mut lists = self.0.lists();
        if let Some(list) = lists.0.get_mut(name) {
            for member in members {
                list.remove(member);
            }
        }
        Ok(())
    }

    async fn list_due(
        &self,
        name: &str,
        by_ms: u64,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let lists = self.0.lists();
        let due = lists.0.get(name).into_iter().flat_map(|list| &list.due);
        let due = due
            .take_while(|(check_ms, _)| *check_ms <= by_ms)
            .take(limit);
        Ok(due.map(|(_, member)| member.as_ref().to_owned()).collect())
    }

    async fn list_reschedule(
        &self,
        name: &str,
        members: &[(String, u64)],
    ) -> Result<(), StoreError> {
        let mut lists = self.0.lists();
        if let Some(list) = lists.0.get_mut(name) {
            for (member, check_ms) in members {
                list.reschedule(member, *check_ms);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_store::Clock;

    #[tokio::test]
    async fn a_page_is_found_at_any_offset() {
        let store = MemoryStore::new(Clock::system());
        let listing = Listing {
            name: "n",
            owner: Some("o"),
        };
        let count = 2 * SKIP_MAX + 10;
        for number in 0..count {
            let member = number.to_string();
            let added = store.list_add(&listing, &member, number, number);
            added.await.unwrap();
        }

        for offset in [
            0,
            1,
            SKIP_MAX - 1,
            SKIP_MAX,
            SKIP_MAX + 1,
            2 * SKIP_MAX,
            count - 1,
        ] {
            let page = store.list_page(&listing, offset, 1).await.unwrap();
            assert_eq!(page, [(count - 1 - offset).to_string()]);
        }
        for offset in [count, u64::MAX] {
            let page = store.list_page(&listing, offset, 1).await.unwrap();
            assert!(page.is_empty(), "{offset}");
        }
    }
}
