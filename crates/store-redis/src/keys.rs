//! Names of keys in Redis. All keys of a thread are in one bucket, which is one cluster slot, so one script can change
//! them together. A life is one existence of a thread, from creation to end.

use super::transport::{SLOTS, slot_of};
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{
    EntryKey, Fingerprint, Life, Namespace, OwnerTag, RateName, ResponseId, ThreadId,
};
use threadkeep_store::{Counted, Listing, ThreadOrder};

/// Number of buckets in a deployment. The number is recorded in Redis at the first start.
pub(super) const BUCKETS: usize = 256;

#[derive(Debug)]
pub(super) struct KeyNames {
    prefix: String,
    /// Key that exists while the changes of all threads are logged.
    pub(super) watch_all: String,
    /// Channel that announces released turns to waiting callers.
    pub(super) ended_turns: String,
    buckets: Vec<Bucket>,
}

/// Keys of a bucket whose names contain no thread id.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Prefix and hash tag of the bucket's keys.
    start: String,
    /// The threads, and the times of their next checks: see `lua/shared/index.lua`.
    pub(super) index: String,
    pub(super) log: String,
    /// Key that holds the position of the last event deleted from the log.
    pub(super) horizon: String,
    /// Two keys: one for the copy into which the log is being rewritten, and one for the random name of the rewriting
    /// task.
    pub(super) log_copy: [String; 2],
    pub(super) archives: String,
    /// Open responses, sorted by due time.
    pub(super) due_responses: String,
    pub(super) entry_heads: String,
    pub(super) entry_members: String,
    pub(super) entry_ends: String,
    pub(super) entry_counts: String,
}

#[derive(Debug)]
pub(super) struct EntryKeys<'a> {
    pub(super) bucket: &'a Bucket,
    pub(super) entry: String,
    pub(super) answers: String,
    pub(super) member: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct ConsumerKeys {
    pub(super) ledger: String,
    pub(super) pending: String,
    pub(super) parked: String,
    pub(super) parked_order: String,
}

#[derive(Debug)]
pub(super) struct ScopeKeys<'a> {
    pub(super) bucket: &'a Bucket,
    pub(super) scope: String,
    pub(super) history: String,
    /// Positions and digests by item id.
    pub(super) ids: String,
    pub(super) answers: String,
    pub(super) thread: Option<String>,
}

#[derive(Debug)]
pub(super) struct ListKeys {
    pub(super) members: String,
    /// Members by the time of their next check.
    pub(super) due: String,
    /// Maps each member to its owner's part of the list.
    pub(super) owners: String,
    /// The part of the list with the owner's members.
    pub(super) part: Option<String>,
}

impl KeyNames {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            watch_all: format!("{prefix}:watched"),
            ended_turns: format!("{prefix}:turns"),
            buckets: tags().iter().map(|tag| Bucket::new(prefix, tag)).collect(),
        }
    }

    pub(super) fn layout(&self) -> String {
        format!("{}:layout", self.prefix)
    }

    /// Returns a key that exists only while a script probes how Redis stores a hash.
    pub(super) fn packing_probe(&self) -> String {
        format!("{}:packing", self.prefix)
    }

    pub(super) fn consumers(&self) -> String {
        format!("{}:consumers", self.prefix)
    }

    /// Returns one unused key per bucket. Setting the key proves that the bucket accepts writes.
    pub(super) fn probes(&self) -> impl Iterator<Item = String> {
        let buckets = self.buckets.iter();
        buckets.map(|bucket| [&bucket.start, ":probe"].concat())
    }

    pub(super) fn records(&self, kind: &str) -> String {
        format!("{}:r:{kind}", self.prefix)
    }

    /// Returns the keys `names`, `newest`, `idle` and `ended` of `lua/kv/namespaces.lua`, which are in one slot.
    pub(super) fn namespaces(&self) -> [String; 4] {
        ["names", "newest", "idle", "ended"]
            .map(|kind| format!("{}:{{namespaces}}:{kind}", self.prefix))
    }

    pub(super) fn namespace_answers(&self, namespace: &Namespace) -> String {
        let digest = hex::encode(namespace_digest(namespace));
        format!("{}:{{namespaces}}:answers:{digest}", self.prefix)
    }

    /// Returns the keys of an entry. The key names contain only a hash, because namespaces and keys are free text.
    pub(super) fn entry(&self, namespace: &Namespace, key: &EntryKey) -> EntryKeys<'_> {
        let parts = [namespace.as_str().as_bytes(), key.as_str().as_bytes()];
        let Fingerprint(hash) = Fingerprint::of(&parts);
        let bucket = &self.buckets[usize::from(hash[0]) % BUCKETS];
        let mut member = namespace_digest(namespace).to_vec();
        member.extend_from_slice(parts[1]);
        let hash = hex::encode(hash);
        EntryKeys {
            bucket,
            entry: [&bucket.start, ":k:", &hash].concat(),
            answers: [&bucket.start, ":ki:", &hash].concat(),
            member,
        }
    }

    /// Returns the key that holds the leases of `pool`, in the same slot as the keys of the consumer `pool`.
    pub(super) fn pool(&self, pool: &str) -> String {
        format!("{}:{{{pool}}}:leases", self.prefix)
    }

    pub(super) fn consumer(&self, consumer: &str) -> ConsumerKeys {
        let key = |kind| format!("{}:{{{consumer}}}:{kind}", self.prefix);
        ConsumerKeys {
            ledger: key("ledger"),
            pending: key("pending"),
            parked: key("parked"),
            parked_order: key("order"),
        }
    }

    /// Panics if `number` is not below [`BUCKETS`].
    pub(super) fn bucket(&self, number: u16) -> &Bucket {
        &self.buckets[usize::from(number)]
    }

    pub(super) fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    pub(super) fn bucket_of(&self, id: &ThreadId) -> &Bucket {
        &self.buckets[bucket_number(id)]
    }

    pub(super) fn thread(&self, id: &ThreadId) -> String {
        self.bucket_of(id).thread(id)
    }

    /// Returns the keys of a scope. If the scope has no thread, its name is free text, so the keys contain a digest.
    pub(super) fn scope(&self, scope: &ScopeId) -> ScopeKeys<'_> {
        if let Some(id) = scope.thread() {
            let bucket = self.bucket_of(id);
            return ScopeKeys {
                thread: Some(bucket.thread(id)),
                ..bucket.scope(id.as_str())
            };
        }
        let name = digest(&scope.to_string());
        let bucket = &self.buckets[hash(name.as_bytes())];
        bucket.scope(&name)
    }

    /// Returns the key of a rate counter. All counters of an address are in one slot; counters of a scope are in the
    /// slot of the scope.
    pub(super) fn rate(&self, counted: Counted<'_>, name: RateName) -> String {
        let (start, id) = match counted {
            Counted::Address(Fingerprint(digest)) => {
                let tag = hex::encode(digest);
                return format!("{}:{{rate.{tag}}}:{}", self.prefix, name.as_str());
            }
            Counted::Scope(ScopeId::Thread(id)) => (&self.bucket_of(id).start, id.to_string()),
            Counted::Scope(scope) => {
                let id = digest(&scope.to_string());
                (&self.buckets[hash(id.as_bytes())].start, id)
            }
        };
        format!("{start}:l:{id}:{}", name.as_str())
    }

    /// Returns the key of the reservations for new threads of `owner`.
    pub(super) fn reservations(&self, owner: OwnerTag) -> String {
        format!("{}:{{owner.{owner}}}:places", self.prefix)
    }

    pub(super) fn bucket_of_scope(&self, scope: &ScopeId) -> u8 {
        let number = match scope.thread() {
            Some(id) => bucket_number(id),
            None => hash(digest(&scope.to_string()).as_bytes()),
        };
        number as u8
    }

    pub(super) fn response(&self, id: &ResponseId) -> [String; 2] {
        let bucket = &self.buckets[usize::from(id.bucket())];
        [":u:", ":ue:"].map(|kind| format!("{}{kind}{id}", bucket.start))
    }

    pub(super) fn list(&self, listing: &Listing<'_>) -> ListKeys {
        let key = |kind| format!("{}:{{list.{}}}:{kind}", self.prefix, listing.name);
        ListKeys {
            members: key("members"),
            due: key("due"),
            owners: key("owners"),
            part: listing
                .owner
                .map(|owner| format!("{}:{}", key("of"), digest(owner))),
        }
    }
}

fn digest(text: &str) -> String {
    hex::encode(Fingerprint::of(&[text.as_bytes()]).0)
}

impl Bucket {
    fn new(prefix: &str, tag: &str) -> Self {
        let start = format!("{prefix}:{{{tag}}}");
        Self {
            index: format!("{start}:g"),
            log: format!("{start}:e"),
            horizon: format!("{start}:h"),
            log_copy: [":ec", ":eb"].map(|kind| format!("{start}{kind}")),
            archives: format!("{start}:x"),
            due_responses: format!("{start}:ud"),
            entry_heads: format!("{start}:kh"),
            entry_members: format!("{start}:kn"),
            entry_ends: format!("{start}:kx"),
            entry_counts: format!("{start}:kc"),
            start,
        }
    }

    pub(super) fn thread(&self, id: &ThreadId) -> String {
        self.name(":t:", id)
    }

    pub(super) fn answers(&self, id: &ThreadId) -> String {
        self.name(":i:", id)
    }

    /// Returns the key of the thread's effects.
    pub(super) fn effects(&self, id: &ThreadId) -> String {
        self.name(":f:", id)
    }

    pub(super) fn checkpoints(&self, id: &ThreadId) -> String {
        self.name(":p:", id)
    }

    pub(super) fn checkpoint(&self, id: &ThreadId, number: u32) -> String {
        format!("{}:{number}", self.checkpoints(id))
    }

    /// Returns the key of the archive for a thread's last life. For an earlier life, callers append its number.
    pub(super) fn archive(&self, id: &ThreadId) -> String {
        self.name(":a:", id)
    }

    /// Returns the key that lists the owner's threads in this bucket, sorted by first or last write.
    pub(super) fn owned(&self, owner: OwnerTag, order: ThreadOrder) -> String {
        let kind = match order {
            ThreadOrder::Created => ":c:",
            ThreadOrder::Updated => ":o:",
        };
        format!("{}{kind}{owner}", self.start)
    }

    /// Returns the key that lists the owner's former lives: lives that ended or that have a different owner by now.
    pub(super) fn ended(&self, owner: OwnerTag) -> String {
        format!("{}:oa:{owner}", self.start)
    }

    /// Returns the key that lists the owner's erased lives. A life is listed until its events are purged.
    pub(super) fn erased(&self, owner: OwnerTag) -> String {
        format!("{}:oe:{owner}", self.start)
    }

    pub(super) fn prepared(&self, import: [u8; 16]) -> String {
        [&self.start, ":m:", &hex::encode(import)].concat()
    }

    /// Returns a key that exists while the thread is watched.
    pub(super) fn watch(&self, id: &ThreadId) -> String {
        self.name(":w:", id)
    }

    /// Returns the keys of the scope of an ended life.
    pub(super) fn final_scope(&self, id: &ThreadId, life: Life) -> ScopeKeys<'_> {
        self.scope(&format!("{id}:{:016x}", life.0))
    }

    fn scope(&self, name: &str) -> ScopeKeys<'_> {
        let key = |kind: &str| [&self.start, kind, name].concat();
        ScopeKeys {
            bucket: self,
            scope: key(":k:"),
            history: key(":y:"),
            ids: key(":z:"),
            answers: key(":j:"),
            thread: None,
        }
    }

    fn name(&self, kind: &str, id: &ThreadId) -> String {
        [&self.start, kind, id.as_str()].concat()
    }
}

/// Returns the digest of a namespace. In a bucket's sets, all members of the namespace begin with this digest.
pub(super) fn namespace_digest(namespace: &Namespace) -> [u8; 16] {
    Fingerprint::of(&[namespace.as_str().as_bytes()]).0
}

pub(super) fn bucket_number(id: &ThreadId) -> usize {
    hash(id.as_bytes())
}

/// Hashes all bytes (FNV-1a), because ids from other systems may be random in only a few of their bytes.
fn hash(name: &[u8]) -> usize {
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // the low bits of an FNV hash are the least mixed, so the high bits are folded into them
    ((hash ^ (hash >> 32)) % BUCKETS as u64) as usize
}

/// Returns one hash tag per bucket: the smallest decimal number whose slot lies in the bucket's equal share of all
/// slots. With 3, 6 or 16 masters, each master therefore holds about the same number of buckets.
fn tags() -> Vec<String> {
    let mut tags = vec![String::new(); BUCKETS];
    let mut missing = BUCKETS;
    for number in 0.. {
        if missing == 0 {
            break;
        }
        let tag = number.to_string();
        let bucket = usize::from(slot_of(tag.as_bytes())) / (usize::from(SLOTS) / BUCKETS);
        if tags[bucket].is_empty() {
            tags[bucket] = tag;
            missing -= 1;
        }
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_equal_shares_of_the_slots_and_of_random_ids() {
        let tags = tags();
        for (bucket, tag) in tags.iter().enumerate() {
            assert_eq!(usize::from(slot_of(tag.as_bytes())) / 64, bucket);
        }

        let mut counts = [0_u32; BUCKETS];
        for _ in 0..BUCKETS * 200 {
            counts[bucket_number(&ThreadId::random())] += 1;
        }
        // by Chernoff's bound for a Poisson mean of 200, a count is outside this range less than once in 10^10 trials
        assert!(
            counts.iter().all(|count| (90..320).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn the_keys_of_a_thread_share_one_hash_tag() {
        let names = KeyNames::new("tk");
        let id = ThreadId::random();
        let bucket = names.bucket_of(&id);

        let tag = |key: &str| key.split_once('}').unwrap().0.to_owned();
        let thread = names.thread(&id);
        assert!(thread.ends_with(&format!("}}:t:{id}")));
        for key in [
            &bucket.answers(&id),
            &bucket.archive(&id),
            &bucket.watch(&id),
            &bucket.checkpoints(&id),
            &bucket.effects(&id),
            &bucket.checkpoint(&id, 1),
            &bucket.index,
            &bucket.log,
            &bucket.horizon,
            &bucket.archives,
        ] {
            assert_eq!(tag(key), tag(&thread));
        }
    }

    #[test]
    fn thread_counters_share_the_slot_of_the_thread_and_address_counters_share_one_slot() {
        let names = KeyNames::new("tk");
        let (id, digest) = (ThreadId::random(), Fingerprint([7; 16]));
        let scope = ScopeId::Thread(id);

        let of_thread = names.rate(Counted::Scope(&scope), RateName::ThreadWrites);
        let of_address = RateName::ALL.map(|name| names.rate(Counted::Address(&digest), name));

        let slot = |key: &str| slot_of(key.as_bytes());
        assert_eq!(slot(&of_thread), slot(&names.thread(&id)));
        let slots = of_address.iter().map(|key| slot(key));
        assert!(
            slots
                .clone()
                .all(|other| Some(other) == slots.clone().next())
        );
    }

    #[test]
    fn entry_keys_share_one_hash_tag_and_contain_no_text_of_the_entry() {
        let names = KeyNames::new("tk");
        let namespace = Namespace::new("customers}{").unwrap();
        let key = EntryKey::new("{secret}").unwrap();
        let EntryKeys {
            bucket,
            entry,
            answers,
            member,
        } = names.entry(&namespace, &key);

        let (tag, rest) = entry.split_once('}').unwrap();
        assert_eq!(rest.len(), ":k:".len() + 32);
        for key in [
            &answers,
            &bucket.entry_heads,
            &bucket.entry_members,
            &bucket.entry_ends,
            &bucket.entry_counts,
        ] {
            assert_eq!(key.split_once('}').unwrap().0, tag);
        }
        assert!(member.ends_with(b"{secret}"));
    }
}
