//! Ends idle namespaces. An idle namespace is hidden immediately, and its entries are freed later.

use super::{RemovedContent, Space, Spaces, held_bytes, shared_bytes};
use threadkeep_domain::Namespace;

impl Spaces {
    /// Returns an existing namespace, and extends its idle time.
    pub(super) fn use_space(&mut self, namespace: &Namespace, now_ms: u64) -> Option<&mut Space> {
        self.end_if_idle(namespace, now_ms);
        let space = self.spaces.get_mut(namespace)?;
        space.record.note_use(now_ms);
        Some(space)
    }

    pub(super) fn end_if_idle(&mut self, namespace: &Namespace, now_ms: u64) {
        let space = self.spaces.get(namespace);
        if space.is_none_or(|space| space.record.lives(now_ms)) {
            return;
        }
        self.check_idle_at(namespace, None);
        if let Some(space) = self.spaces.remove(namespace) {
            self.order.remove(&space.record.position());
            self.ended.push(space);
        }
    }

    /// Schedules the next idle check of a namespace; `None` cancels it.
    pub(super) fn check_idle_at(&mut self, namespace: &Namespace, check_ms: Option<u64>) {
        let Some(space) = self.spaces.get_mut(namespace) else {
            return;
        };
        let old_ms = std::mem::replace(&mut space.idle_check_ms, check_ms);
        if let Some(old_ms) = old_ms {
            self.idle.remove(&(old_ms, namespace.clone()));
        }
        if let Some(new_ms) = check_ms {
            self.idle.insert((new_ms, namespace.clone()));
        }
    }

    pub(super) fn end_idle(&mut self, now_ms: u64, limit: usize) -> bool {
        for _ in 0..limit {
            match self.idle.first() {
                Some((check_ms, _)) if *check_ms <= now_ms => {}
                _ => return false,
            }
            let Some((_, name)) = self.idle.pop_first() else {
                return false;
            };
            let Some(space) = self.spaces.get_mut(&name) else {
                continue;
            };
            // the namespace was used since
            space.idle_check_ms = space.record.idle.map(|idle| idle.ends_ms);
            match space.idle_check_ms {
                Some(check_ms) if check_ms > now_ms => drop(self.idle.insert((check_ms, name))),
                _ => {
                    space.idle_check_ms = None;
                    self.end_if_idle(&name, now_ms);
                }
            }
        }
        true
    }

    /// Moves up to `limit` entries of ended namespaces into `removed`. Returns whether more such entries may remain.
    pub(super) fn free_ended(&mut self, limit: usize, removed: &mut RemovedContent) -> bool {
        for _ in 0..limit {
            let Some(space) = self.ended.last_mut() else {
                return false;
            };
            let before = space.tree_bytes();
            let Some((key, entry)) = space.entries.pop_first() else {
                self.heap_bytes -= shared_bytes(space.record.namespace.as_str());
                self.ended.pop();
                continue;
            };
            self.heap_bytes -= held_bytes(&key, &entry) + (before - space.tree_bytes());
            self.ends
                .remove(&super::end_of(&entry, &space.record.namespace, &key));
            removed.entries.push(entry);
        }
        true
    }
}
