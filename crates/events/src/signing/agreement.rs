//! Decides which key of a key ring signs, based on the cards (lists of keys) that all replicas publish.

use std::time::Duration;

use tokio::time::Instant;

use super::CARD_LIFETIME;
use super::card::{Card, digest_of, name_of};
use threadkeep_domain::KeyRing;

/// Decides which key signs on this replica. A replica that is down for a short time does not report its keys, so a new
/// key must be on all known replicas for a while before it signs.
#[derive(Debug)]
pub(super) struct Agreement {
    ring: KeyRing,
    /// Digests of the keys, in the order of the ring.
    digests: Vec<String>,
    wait: Duration,
    /// Time at which this replica last received the cards. A process that was frozen for longer than [`CARD_LIFETIME`]
    /// may have missed replicas that started and stopped in the meantime. The time is monotonic, so that a clock change
    /// cannot shorten a wait.
    cards_received_at: Option<Instant>,
    /// The time since which all known replicas have had the chosen key.
    shared_since: Option<Instant>,
    is_shared: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Situation {
    /// The chosen key signs, and all replicas have it.
    #[default]
    Agreed,
    /// All replicas have the chosen key, but have not had it for long enough yet.
    Settling,
    /// Some replicas lack the chosen key. Another key, which all replicas have, signs instead.
    Withheld,
    /// Some replicas do not report their keys. The other replicas have the current signing key, so that key continues
    /// to sign.
    Unknown,
    /// According to the reports, no key is on all replicas, so some replicas cannot verify new signatures.
    NoCommonKey,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Verdict {
    pub(super) situation: Situation,
    /// Replicas that lack the chosen key.
    pub(super) without: usize,
    pub(super) silent: usize,
    /// Names of keys that other replicas sign with but this replica lacks.
    pub(super) foreign: Vec<String>,
}

impl Agreement {
    pub(super) fn new(ring: KeyRing, wait: Duration) -> Self {
        let digests = ring.keys().iter().map(|key| key.print().digest).collect();
        Self {
            ring,
            digests,
            wait,
            cards_received_at: None,
            shared_since: None,
            is_shared: false,
        }
    }

    /// Signs with the key that has `digest`, if the ring has such a key.
    pub(super) fn resume(&self, digest: &str) {
        if let Some(index) = self.digests.iter().position(|ours| ours == digest) {
            self.ring.sign_with(index);
        }
    }

    /// Restarts the wait for the chosen key after an outage.
    pub(super) fn forget(&mut self) {
        self.cards_received_at = None;
    }

    /// Returns whether all replicas have the signing key, according to recent cards.
    pub(super) fn is_shared(&self, now: Instant) -> bool {
        self.is_shared && self.has_recent_cards(now)
    }

    fn has_recent_cards(&self, now: Instant) -> bool {
        self.cards_received_at
            .is_some_and(|at| now - at <= CARD_LIFETIME)
    }

    /// Decides which key signs, based on the cards of all live replicas, including this one. A replica without a
    /// readable card is listed as `None`. `now` is the time at which the cards were requested.
    pub(super) fn decide(&mut self, cards: &[Option<Card>], now: Instant) -> Verdict {
        let known: Vec<_> = cards.iter().flatten().collect();
        let without = |index: usize| {
            let lacks = |card: &&&Card| !card.has(&self.digests[index]);
            known.iter().filter(lacks).count()
        };
        // a ring with a single key has no alternative, so missing cards do not matter
        let silent = match self.digests.len() {
            1 => 0,
            _ => cards.len() - known.len(),
        };
        let is_on_all = |index: usize| silent == 0 && without(index) == 0;
        let (chosen, signing) = (self.ring.chosen(), self.ring.signing());
        let held_before = self.shared_since.filter(|_| self.has_recent_cards(now));
        let shared_since = is_on_all(chosen).then(|| held_before.unwrap_or(now));
        let has_settled = shared_since.is_some_and(|since| now - since >= self.wait);

        let next = if has_settled {
            chosen
        } else if is_on_all(signing) {
            signing
        } else {
            // some replicas cannot verify the current signatures, so switch now to a key that all replicas have
            let others = std::iter::once(chosen).chain(0..self.digests.len());
            others
                .into_iter()
                .find(|index| is_on_all(*index))
                .unwrap_or(signing)
        };
        let situation = match (next == chosen, is_on_all(chosen)) {
            (true, true) => Situation::Agreed,
            (false, true) => Situation::Settling,
            (false, false) if is_on_all(next) => Situation::Withheld,
            (_, false) if silent > 0 && without(next) == 0 => Situation::Unknown,
            (_, false) => Situation::NoCommonKey,
        };
        let verdict = Verdict {
            situation,
            without: without(chosen),
            silent,
            foreign: self.foreign(&known),
        };
        self.is_shared = is_on_all(next);
        self.cards_received_at = Some(now);
        self.shared_since = shared_since;
        self.ring.sign_with(next);
        verdict
    }

    fn foreign(&self, cards: &[&Card]) -> Vec<String> {
        let is_ours = |print: &str| self.digests.iter().any(|ours| ours == digest_of(print));
        let signing = cards.iter().filter_map(|card| card.signs.as_deref());
        let foreign = signing.filter(|print| !is_ours(print));
        let mut names: Vec<_> = foreign.map(|print| name_of(print).to_owned()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_domain::SigningKey;

    const WAIT: Duration = Duration::from_secs(600);

    fn ring(names: &[&str]) -> KeyRing {
        let key = |name: &&str| SigningKey::new(*name, name.as_bytes());
        KeyRing::new(names.iter().map(key).collect()).unwrap()
    }

    fn card(names: &[&str]) -> Option<Card> {
        Some(Card::of(&ring(names)))
    }

    /// Returns the agreement of a replica that is about to switch from `old` to `new`.
    fn rotating() -> Agreement {
        let agreement = Agreement::new(ring(&["new", "old"]), WAIT);
        agreement.resume(&agreement.digests[1].clone());
        agreement
    }

    /// Passes `cards` to `agreement` once per [`CARD_LIFETIME`], between `from` and `to`. Returns the last verdict.
    fn decide_repeatedly(
        agreement: &mut Agreement,
        cards: &[Option<Card>],
        from: Instant,
        to: Instant,
    ) -> Verdict {
        let mut now = from;
        while now < to {
            agreement.decide(cards, now);
            now += CARD_LIFETIME;
        }
        agreement.decide(cards, to)
    }

    fn signs(agreement: &Agreement) -> &str {
        agreement
            .ring
            .names()
            .nth(agreement.ring.signing())
            .unwrap()
    }

    #[test]
    fn a_new_key_signs_once_all_replicas_have_had_it_long_enough() {
        let mut agreement = rotating();
        let now = Instant::now();
        let both = [card(&["old", "new"]), card(&["new", "old"])];

        let verdict = agreement.decide(&both, now);
        assert_eq!(
            (verdict.situation, signs(&agreement)),
            (Situation::Settling, "old")
        );
        let before = now + WAIT - Duration::from_millis(1);
        decide_repeatedly(&mut agreement, &both, now, before);
        assert_eq!(signs(&agreement), "old");
        let verdict = agreement.decide(&both, now + WAIT);
        assert_eq!(
            (verdict.situation, signs(&agreement)),
            (Situation::Agreed, "new")
        );
    }

    #[test]
    fn a_replica_without_the_key_restarts_the_wait() {
        let mut agreement = rotating();
        let now = Instant::now();
        let alone = [card(&["new", "old"])];

        decide_repeatedly(&mut agreement, &alone, now, now + WAIT / 2);
        let verdict = agreement.decide(&[card(&["new", "old"]), card(&["old"])], now + WAIT / 2);
        assert_eq!(
            (verdict.situation, verdict.without),
            (Situation::Withheld, 1)
        );
        decide_repeatedly(&mut agreement, &alone, now + WAIT / 2, now + WAIT);
        assert_eq!(signs(&agreement), "old");
        decide_repeatedly(&mut agreement, &alone, now + WAIT, now + WAIT * 2);
        assert_eq!(signs(&agreement), "new");
    }

    #[test]
    fn a_store_outage_restarts_the_wait() {
        let mut agreement = rotating();
        let now = Instant::now();
        let both = [card(&["new", "old"]), card(&["new", "old"])];

        decide_repeatedly(&mut agreement, &both, now, now + WAIT / 2);
        agreement.forget();
        assert!(!agreement.is_shared(now + WAIT / 2));
        decide_repeatedly(&mut agreement, &both, now + WAIT / 2, now + WAIT);
        assert_eq!(signs(&agreement), "old");
    }

    #[test]
    fn a_frozen_process_restarts_the_wait() {
        let mut agreement = rotating();
        let now = Instant::now();
        let both = [card(&["new", "old"]), card(&["new", "old"])];

        agreement.decide(&both, now);
        assert!(agreement.is_shared(now + CARD_LIFETIME));
        assert!(!agreement.is_shared(now + WAIT));
        agreement.decide(&both, now + WAIT);
        assert_eq!(signs(&agreement), "old");
        decide_repeatedly(&mut agreement, &both, now + WAIT, now + WAIT * 2);
        assert_eq!(signs(&agreement), "new");
    }

    #[test]
    fn a_replica_without_the_signing_key_restores_the_previous_one_immediately() {
        let mut agreement = Agreement::new(ring(&["new", "old"]), WAIT);
        let now = Instant::now();

        agreement.decide(&[card(&["new", "old"])], now);
        assert_eq!(signs(&agreement), "new");
        let verdict = agreement.decide(&[card(&["new", "old"]), card(&["old"])], now);
        assert_eq!(
            (verdict.situation, signs(&agreement)),
            (Situation::Withheld, "old")
        );
    }

    #[test]
    fn a_silent_replica_does_not_change_the_signing_key() {
        for mut agreement in [rotating(), Agreement::new(ring(&["new", "old"]), WAIT)] {
            let before = signs(&agreement).to_owned();
            let now = Instant::now();

            for later in [Duration::ZERO, WAIT * 2] {
                let verdict = agreement.decide(&[card(&["new", "old"]), None], now + later);
                assert_eq!((verdict.situation, verdict.silent), (Situation::Unknown, 1));
            }
            assert!(!agreement.is_shared(now + WAIT * 2));
            let lacking = [card(&["new", "old"]), card(&["other"]), None];
            let verdict = agreement.decide(&lacking, now + WAIT * 2);
            assert_eq!(verdict.situation, Situation::NoCommonKey);

            assert_eq!(signs(&agreement), before);
        }
    }

    #[test]
    fn a_ring_with_one_key_ignores_silent_replicas() {
        let mut agreement = Agreement::new(ring(&["only"]), WAIT);

        let verdict = agreement.decide(&[card(&["only"]), None], Instant::now());

        assert_eq!(verdict, Verdict::default());
    }

    #[test]
    fn replicas_without_a_common_key_are_reported_and_keep_theirs() {
        let mut agreement = Agreement::new(ring(&["ours"]), WAIT);

        let verdict = agreement.decide(&[card(&["ours"]), card(&["theirs"])], Instant::now());

        assert_eq!(
            (verdict.situation, verdict.without),
            (Situation::NoCommonKey, 1)
        );
        assert_eq!(verdict.foreign, ["theirs"]);
        assert_eq!(signs(&agreement), "ours");
    }

    #[test]
    fn a_new_fleet_signs_with_the_chosen_key_immediately() {
        let ring = ring(&["old", "new"]).choose("new").unwrap();
        let mut agreement = Agreement::new(ring.clone(), WAIT);

        agreement.decide(&[Some(Card::of(&ring))], Instant::now());

        assert_eq!(signs(&agreement), "new");
    }

    #[test]
    fn a_card_in_an_unknown_format_is_ignored() {
        assert_eq!(Card::read(b"2 of something else"), None);
        let card = br#"{"signs":"a:b","keys":["a:b:c"],"more":1}"#;
        assert!(Card::read(card).unwrap().has("a"));
    }
}
