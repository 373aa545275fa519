use serde::{Deserialize, Serialize};

use super::Secret;

/// How long deliveries are also signed with a former secret, for receivers that do not have the new secret yet.
const FORMER_SECRET_TTL_MS: u64 = 86_400_000;
/// Maximum number of former secrets that deliveries are signed with. Each secret adds a signature to the header.
const FORMER_SECRETS_MAX: usize = 4;

/// The current secret of an endpoint, and the former secrets that deliveries are also signed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Secrets {
    current: Secret,
    /// Newest first.
    former: Vec<Former>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Former {
    secret: Secret,
    /// When the secret expires; `None` if it never expires.
    until_ms: Option<u64>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredSecrets {
    current: String,
    former: Vec<StoredFormer>,
}

#[derive(Serialize, Deserialize)]
struct StoredFormer {
    secret: String,
    until_ms: Option<u64>,
}

impl Secrets {
    pub(super) fn new(current: Secret) -> Self {
        Self {
            current,
            former: Vec::new(),
        }
    }

    /// Creates secrets that never expire. Returns `None` if `secrets` is empty.
    pub(super) fn configured(secrets: Vec<Secret>) -> Option<Self> {
        let mut secrets = secrets.into_iter();
        let current = secrets.next()?;
        let former = secrets.map(|secret| Former {
            secret,
            until_ms: None,
        });
        Some(Self {
            current,
            former: former.collect(),
        })
    }

    pub(super) fn current(&self) -> &Secret {
        &self.current
    }

    /// Replaces the current secret. Deliveries are also signed with the old secret for [`FORMER_SECRET_TTL_MS`].
    pub(super) fn rotate(&mut self, new: Secret, now_ms: u64) {
        if new == self.current {
            return;
        }
        let secret = std::mem::replace(&mut self.current, new);
        let until_ms = Some(now_ms + FORMER_SECRET_TTL_MS);
        self.former
            .retain(|former| former.is_valid(now_ms) && former.secret != self.current);
        self.former.insert(0, Former { secret, until_ms });
        self.former.truncate(FORMER_SECRETS_MAX);
    }

    /// Returns the value of the `webhook-signature` header.
    pub(super) fn signatures(&self, id: &str, now_ms: u64, body: &[u8]) -> String {
        let former = self.former.iter().filter(|former| former.is_valid(now_ms));
        let valid = former.map(|former| &former.secret);
        let signatures = std::iter::once(&self.current).chain(valid).map(|secret| {
            let signature = secret.sign(id, now_ms / 1000, body);
            format!("v1,{signature}")
        });
        signatures.collect::<Vec<_>>().join(" ")
    }

    pub(super) fn to_stored(&self) -> StoredSecrets {
        let former = self.former.iter().map(|former| StoredFormer {
            secret: former.secret.expose(),
            until_ms: former.until_ms,
        });
        StoredSecrets {
            current: self.current.expose(),
            former: former.collect(),
        }
    }

    pub(super) fn read(stored: &StoredSecrets) -> Option<Self> {
        let former = stored.former.iter().map(|former| {
            Some(Former {
                secret: former.secret.parse().ok()?,
                until_ms: former.until_ms,
            })
        });
        Some(Self {
            current: stored.current.parse().ok()?,
            former: former.collect::<Option<_>>()?,
        })
    }
}

impl Former {
    fn is_valid(&self, now_ms: u64) -> bool {
        self.until_ms.is_none_or(|until_ms| now_ms < until_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 86_400_000;

    /// Returns the indexes, in `known`, of the secrets that are used for signing at `now_ms`.
    fn signing(secrets: &Secrets, known: &[&Secret], now_ms: u64) -> Vec<usize> {
        let header = secrets.signatures("evt", now_ms, b"{}");
        let index = |signature: &str| {
            let index = known.iter().position(|secret| {
                signature == format!("v1,{}", secret.sign("evt", now_ms / 1000, b"{}"))
            });
            index.unwrap()
        };
        header.split(' ').map(index).collect()
    }

    #[test]
    fn a_former_secret_signs_for_a_day() {
        let (old, new) = (Secret::random(), Secret::random());
        let known = [&old, &new];
        let mut secrets = Secrets::new(old.clone());
        assert_eq!(signing(&secrets, &known, 0), [0]);

        secrets.rotate(new.clone(), 0);

        assert_eq!(signing(&secrets, &known, DAY_MS - 1), [1, 0]);
        assert_eq!(signing(&secrets, &known, DAY_MS), [1]);
        let stored = Secrets::read(&secrets.to_stored()).unwrap();
        assert_eq!(stored, secrets);
    }

    #[test]
    fn former_secrets_are_limited_and_the_same_secret_is_not_rotated() {
        let known: Vec<_> = (0..9).map(|_| Secret::random()).collect();
        let known: Vec<_> = known.iter().collect();
        let mut secrets = Secrets::new(known[0].clone());

        for secret in &known[1..] {
            secrets.rotate((*secret).clone(), 0);
            secrets.rotate((*secret).clone(), 0);
        }
        assert_eq!(signing(&secrets, &known, 1), [8, 7, 6, 5, 4]);
        secrets.rotate(known[7].clone(), 0);
        assert_eq!(signing(&secrets, &known, 1), [7, 8, 6, 5, 4]);
    }

    #[test]
    fn configured_secrets_never_expire() {
        let (one, other) = (Secret::random(), Secret::random());

        let secrets = Secrets::configured(vec![one.clone(), other.clone()]).unwrap();

        assert_eq!(signing(&secrets, &[&one, &other], u64::MAX), [0, 1]);
        assert_eq!(Secrets::configured(Vec::new()), None);
    }
}
