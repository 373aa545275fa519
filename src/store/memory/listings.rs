//! Lists of what was made, which are gone with the process.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use async_trait::async_trait;

use super::MemoryStore;
use super::budget::Part;
use crate::domain::heap::{self, Heap};
use crate::store::{Listing, Listings, StoreError};

/// Lists by name. One lock is enough: what is made is rare beside what is written to it.
#[derive(Debug, Default)]
pub(super) struct Lists(HashMap<String, List>);

/// Members, each with a time, in order.
type Places = BTreeSet<(u64, Arc<str>)>;

#[derive(Debug, Default)]
struct List {
    members: HashMap<Arc<str>, Member>,
    all: Places,
    of_owners: BTreeMap<Arc<str>, Places>,
    due: Places,
    /// Heap bytes of names, owners and their parts.
    heap_bytes: u64,
}

#[derive(Debug)]
struct Member {
    at_ms: u64,
    look_ms: u64,
    owner: Option<Arc<str>>,
}

impl Lists {
    /// Members of all lists.
    pub(super) fn len(&self) -> usize {
        self.0.values().map(|list| list.members.len()).sum()
    }
}

impl List {
    fn add(&mut self, member: &str, owner: Option<&str>, at_ms: u64, look_ms: u64) {
        if self.members.contains_key(member) {
            return;
        }
        let name: Arc<str> = member.into();
        let owner: Option<Arc<str>> = owner.map(Into::into);
        self.all.insert((at_ms, Arc::clone(&name)));
        self.due.insert((look_ms, Arc::clone(&name)));
        if let Some(owner) = &owner {
            let part = self.of_owners.entry(Arc::clone(owner)).or_default();
            let before = tree_bytes(part);
            part.insert((at_ms, Arc::clone(&name)));
            self.heap_bytes += tree_bytes(part) - before;
        }
        let member = Member {
            at_ms,
            look_ms,
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
        self.due.remove(&(member.look_ms, Arc::clone(&name)));
        let place = (member.at_ms, name);
        self.all.remove(&place);
        if let Some(owner) = member.owner
            && let Some(part) = self.of_owners.get_mut(&owner)
        {
            let before = tree_bytes(part);
            part.remove(&place);
            self.heap_bytes -= before - tree_bytes(part);
            if part.is_empty() {
                self.of_owners.remove(&owner);
            }
        }
    }

    fn look_again(&mut self, member: &str, look_ms: u64) {
        let Some((name, _)) = self.members.get_key_value(member) else {
            return;
        };
        let name = Arc::clone(name);
        if let Some(member) = self.members.get_mut(&name) {
            self.due.remove(&(member.look_ms, Arc::clone(&name)));
            member.look_ms = look_ms;
            self.due.insert((look_ms, name));
        }
    }
}

impl Member {
    /// Heap bytes of its name and its owner.
    fn held_bytes(&self, name: &str) -> u64 {
        let text = |text: &str| heap::block(2 * size_of::<usize>() + text.len());
        text(name) + self.owner.as_deref().map_or(0, text)
    }
}

fn tree_bytes(places: &Places) -> u64 {
    heap::tree::<(u64, Arc<str>)>(places.len())
}

impl Heap for List {
    fn heap_bytes(&self) -> u64 {
        heap::table::<(Arc<str>, Member)>(self.members.capacity())
            + tree_bytes(&self.all)
            + tree_bytes(&self.due)
            + heap::tree::<(Arc<str>, Places)>(self.of_owners.len())
            + self.heap_bytes
    }
}

/// There are as many lists as kinds of things that are listed.
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
        look_ms: u64,
    ) -> Result<(), StoreError> {
        self.0.admit()?;
        let mut lists = self.0.lists();
        let list = lists.0.entry(listing.name.to_owned()).or_default();
        list.add(member, listing.owner, at_ms, look_ms);
        Ok(())
    }

    async fn list_page(
        &self,
        listing: &Listing<'_>,
        offset: u64,
        most: usize,
    ) -> Result<Vec<String>, StoreError> {
        let lists = self.0.lists();
        let list = lists.0.get(listing.name);
        let places = list.and_then(|list| match listing.owner {
            Some(owner) => list.of_owners.get(owner),
            None => Some(&list.all),
        });
        let newest = places.into_iter().flat_map(|places| places.iter().rev());
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let page = newest.skip(offset).take(most);
        Ok(page.map(|(_, member)| member.as_ref().to_owned()).collect())
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
        most: usize,
    ) -> Result<Vec<String>, StoreError> {
        let lists = self.0.lists();
        let due = lists.0.get(name).into_iter().flat_map(|list| &list.due);
        let due = due.take_while(|(look_ms, _)| *look_ms <= by_ms).take(most);
        Ok(due.map(|(_, member)| member.as_ref().to_owned()).collect())
    }

    async fn list_look_again(
        &self,
        name: &str,
        members: &[(String, u64)],
    ) -> Result<(), StoreError> {
        let mut lists = self.0.lists();
        if let Some(list) = lists.0.get_mut(name) {
            for (member, look_ms) in members {
                list.look_again(member, *look_ms);
            }
        }
        Ok(())
    }
}
