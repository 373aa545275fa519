use std::collections::{HashMap, VecDeque};

use threadkeep_domain::heap::{self, Heap};
use threadkeep_domain::{Life, ThreadId};

/// The former ids of threads that were moved to a new id. An id is listed while data may exist under it, because an
/// erasure must cover that data.
#[derive(Debug, Default)]
pub(crate) struct FormerIds {
    of_life: HashMap<Life, Ids>,
    /// The time of each move, oldest first.
    order: VecDeque<(u64, Life)>,
}

#[derive(Debug)]
struct Ids {
    /// Oldest first.
    former: VecDeque<ThreadId>,
    present: ThreadId,
}

impl FormerIds {
    /// Records that a thread was moved to a different id. Drops records of moves before `oldest_ms`.
    pub(crate) fn note(
        &mut self,
        life: Life,
        (from, to): (&ThreadId, &ThreadId),
        now_ms: u64,
        oldest_ms: u64,
    ) {
        while let Some((_, life)) = self.order.pop_front_if(|(at, _)| *at < oldest_ms) {
            self.forget_one(life);
        }
        let ids = self.of_life.entry(life).or_insert_with(|| Ids {
            former: VecDeque::new(),
            present: *to,
        });
        ids.former.push_back(*from);
        ids.present = *to;
        self.order.push_back((now_ms, life));
    }

    fn forget_one(&mut self, life: Life) {
        if let Some(ids) = self.of_life.get_mut(&life) {
            ids.former.pop_front();
            if ids.former.is_empty() {
                self.of_life.remove(&life);
            }
        }
    }

    pub(crate) fn ids(&self, life: Life) -> Vec<ThreadId> {
        let ids = self.of_life.get(&life).into_iter();
        ids.flat_map(|ids| ids.former.iter().copied().chain([ids.present]))
            .collect()
    }

    pub(crate) fn take(&mut self, life: Life, limit: usize) -> Vec<ThreadId> {
        let Some(ids) = self.of_life.get_mut(&life) else {
            return Vec::new();
        };
        let taken = ids.former.drain(..limit.min(ids.former.len())).collect();
        if ids.former.is_empty() {
            self.of_life.remove(&life);
        }
        taken
    }
}

impl Heap for FormerIds {
    fn heap_bytes(&self) -> u64 {
        heap::table::<(Life, Ids)>(self.of_life.capacity())
            + heap::array::<(u64, Life)>(self.order.capacity())
            // most lives move only once
            + heap::array::<ThreadId>(4) * self.of_life.len() as u64
            + (size_of::<ThreadId>() * self.order.len()) as u64
    }
}
