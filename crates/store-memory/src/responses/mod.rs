mod store;

use std::collections::{BTreeMap, BTreeSet};

use super::slots::{Due, Slots};
use threadkeep_domain::heap::{self, Heap};
use threadkeep_domain::response::held::HeldResponse;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Life, OwnerTag, Refusal, ResponseId};

#[derive(Debug, Default)]
pub(super) struct HeldResponses {
    slots: Slots<ResponseId, Slot>,
    listed: ResponseLists,
}

#[derive(Debug, Default)]
struct ResponseLists {
    /// Responses by the life of their thread, for erasures.
    of_lives: BTreeSet<(Life, ResponseId)>,
    due: BTreeSet<(u64, ResponseId)>,
    /// The owner of each ended life that has responses.
    owners: BTreeMap<Life, OwnerTag>,
    /// The entries of `owners`, by owner.
    ended: BTreeSet<(OwnerTag, Life)>,
    /// The running response of each scope that has no thread.
    floors: BTreeMap<ScopeId, ResponseId>,
}

#[derive(Debug, Default)]
struct Slot(Option<HeldResponse>);

impl HeldResponses {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn get(&self, id: &ResponseId, now_ms: u64) -> Option<&HeldResponse> {
        let held = self.slots.get(id)?.0.as_ref();
        held.filter(|held| held.ends_ms() > now_ms)
    }

    fn change<T>(
        &mut self,
        id: &ResponseId,
        now_ms: u64,
        change: impl FnOnce(&mut HeldResponse) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.get(id, now_ms).ok_or(Refusal::TurnLost)?;
        let ResponseLists { due, floors, .. } = &mut self.listed;
        self.slots.change(id, |slot| {
            let held = slot.0.as_mut().ok_or(Refusal::TurnLost)?;
            let before = held.due_ms();
            let changed = change(held);
            if held.answer().is_some() {
                ResponseLists::free(floors, id, held);
            }
            if held.due_ms() != before {
                due.remove(&(before.unwrap_or_default(), *id));
                due.extend(held.due_ms().map(|due_ms| (due_ms, *id)));
            }
            changed
        })
    }

    fn keep(&mut self, id: &ResponseId, held: HeldResponse) {
        self.forget(id);
        self.listed.add(id, &held);
        self.slots.change(id, |slot| slot.0 = Some(held));
    }

    /// Removes a response. The caller drops it outside the lock.
    fn forget(&mut self, id: &ResponseId) -> Option<HeldResponse> {
        let removed = self.slots.recheck(id, u64::MAX, |slot| slot.0.take())??;
        self.listed.remove(id, &removed);
        Some(removed)
    }

    /// Returns the response that has reserved `scope`, which has no thread. Ignores a reservation by `id` itself.
    fn floor_holder(
        &self,
        scope: &ScopeId,
        id: &ResponseId,
        now_ms: u64,
    ) -> Option<(ResponseId, &HeldResponse)> {
        let holder = self.listed.floors.get(scope)?;
        let held = self.get(holder, now_ms).filter(|_| holder != id)?;
        Some((*holder, held))
    }

    /// Reserves `scope`, which has no thread, for the response `id` until the response ends.
    fn take_floor(&mut self, scope: &ScopeId, id: ResponseId) {
        self.listed.floors.insert(scope.clone(), id);
    }

    fn due(&self, now_ms: u64) -> impl Iterator<Item = ResponseId> {
        let due = self.listed.due.iter();
        let due = due.take_while(move |(due_ms, _)| *due_ms <= now_ms);
        let is_kept = move |id: &ResponseId| self.get(id, now_ms).is_some();
        due.map(|(_, id)| *id).filter(is_kept)
    }

    pub(super) fn note_ended(&mut self, life: Life, owner: OwnerTag) {
        let listed = &mut self.listed;
        if listed.of_life(life).next().is_some() {
            listed.owners.insert(life, owner);
            listed.ended.insert((owner, life));
        }
    }

    pub(super) fn erase_ended(&mut self, owner: OwnerTag, limit: usize) -> Vec<HeldResponse> {
        let from = self.listed.ended.range((owner, Life(0))..);
        let lives = from.take_while(|(other, _)| *other == owner).take(limit);
        let ids = lives.flat_map(|(_, life)| self.listed.of_life(*life));
        self.take(ids.take(limit).collect())
    }

    pub(super) fn erase(&mut self, life: Life, limit: usize) -> Vec<HeldResponse> {
        self.take(self.listed.of_life(life).take(limit).collect())
    }

    fn take(&mut self, ids: Vec<ResponseId>) -> Vec<HeldResponse> {
        ids.iter().filter_map(|id| self.forget(id)).collect()
    }

    pub(super) fn sweep(&mut self, now_ms: u64, limit: usize) -> bool {
        let listed = &mut self.listed;
        self.slots.sweep(now_ms, limit, |id, slot| {
            if let Some(removed) = slot.0.take_if(|held| held.ends_ms() <= now_ms) {
                listed.remove(id, &removed);
            }
        })
    }
}

impl ResponseLists {
    fn of_life(&self, life: Life) -> impl Iterator<Item = ResponseId> {
        let range = (life, ResponseId::MIN)..=(life, ResponseId::MAX);
        self.of_lives.range(range).map(|(_, id)| *id)
    }

    fn add(&mut self, id: &ResponseId, held: &HeldResponse) {
        if let Some(life) = held.life() {
            self.of_lives.insert((life, *id));
        }
        if let Some(due_ms) = held.due_ms() {
            self.due.insert((due_ms, *id));
        }
    }

    fn free(floors: &mut BTreeMap<ScopeId, ResponseId>, id: &ResponseId, held: &HeldResponse) {
        if floors.get(held.scope()) == Some(id) {
            floors.remove(held.scope());
        }
    }

    fn remove(&mut self, id: &ResponseId, held: &HeldResponse) {
        Self::free(&mut self.floors, id, held);
        if let Some(life) = held.life() {
            self.of_lives.remove(&(life, *id));
            if self.of_life(life).next().is_none()
                && let Some(owner) = self.owners.remove(&life)
            {
                self.ended.remove(&(owner, life));
            }
        }
        if let Some(due_ms) = held.due_ms() {
            self.due.remove(&(due_ms, *id));
        }
    }
}

impl Due for Slot {
    fn due_ms(&self) -> u64 {
        self.0.as_ref().map_or(0, |held| held.ends_ms())
    }
}

impl Heap for Slot {
    fn heap_bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, Heap::heap_bytes)
    }
}

impl Heap for HeldResponses {
    fn heap_bytes(&self) -> u64 {
        let ResponseLists {
            of_lives,
            due,
            owners,
            ended,
            floors,
        } = &self.listed;
        self.slots.heap_bytes()
            + heap::tree::<(Life, ResponseId)>(of_lives.len())
            + heap::tree::<(u64, ResponseId)>(due.len())
            + heap::tree::<(Life, OwnerTag)>(owners.len())
            + heap::tree::<(OwnerTag, Life)>(ended.len())
            + heap::tree::<(ScopeId, ResponseId)>(floors.len())
    }
}
