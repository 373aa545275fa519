use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use threadkeep_domain::Namespace;

/// A right of an API key, as named in the setting `api_key_rights`, or the right that a call needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Right {
    /// `all`: every call.
    All,
    /// `threads`: reads and writes of threads and archives.
    Threads,
    /// `threads.read`: reads of threads and archives.
    ThreadsRead,
    /// `scopes`: scopes and tools.
    Scopes,
    /// `kv`: every namespace.
    Kv,
    /// `kv/<namespace>`: one namespace.
    KvOf(Namespace),
    /// `events`: the stream of all events.
    Events,
    /// `webhooks`: webhook endpoints.
    Webhooks,
    /// `owners`: counting and erasing the data of owners.
    Owners,
    /// `admin`: calls for operators.
    Admin,
}

/// The text is not the name of a right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown right `{0}`; allowed: all, threads, threads.read, scopes, kv, kv/<namespace>, events, webhooks, owners, admin"
)]
pub struct RightError(String);

impl Right {
    fn covers(&self, needed: &Self) -> bool {
        match (self, needed) {
            (Self::All, _) | (Self::Threads, Self::ThreadsRead) | (Self::Kv, Self::KvOf(_)) => true,
            _ => self == needed,
        }
    }

    /// Returns whether each call that needs this right is logged.
    #[must_use]
    pub fn is_audited(&self) -> bool {
        matches!(self, Self::Webhooks | Self::Owners | Self::Admin)
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "all",
            Self::Threads => "threads",
            Self::ThreadsRead => "threads.read",
            Self::Scopes => "scopes",
            Self::Kv => "kv",
            Self::KvOf(namespace) => return write!(f, "kv/{}", namespace.as_str()),
            Self::Events => "events",
            Self::Webhooks => "webhooks",
            Self::Owners => "owners",
            Self::Admin => "admin",
        })
    }
}

impl FromStr for Right {
    type Err = RightError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(namespace) = text.strip_prefix("kv/") {
            return Namespace::new(namespace)
                .map(Self::KvOf)
                .map_err(|_| RightError(text.to_owned()));
        }
        let rights = [
            Self::All,
            Self::Threads,
            Self::ThreadsRead,
            Self::Scopes,
            Self::Kv,
            Self::Events,
            Self::Webhooks,
            Self::Owners,
            Self::Admin,
        ];
        rights
            .into_iter()
            .find(|right| right.to_string() == text)
            .ok_or_else(|| RightError(text.to_owned()))
    }
}

/// The rights of one key. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights(Arc<[Right]>);

impl Rights {
    /// Returns whether a key with these rights may make a call that needs the right `needed`.
    #[must_use]
    pub fn cover(&self, needed: &Right) -> bool {
        self.0.iter().any(|right| right.covers(needed))
    }

    /// Returns the names of the rights.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(Right::to_string)
    }
}

impl Default for Rights {
    /// Returns the rights of a key that `api_key_rights` does not list.
    fn default() -> Self {
        Self([Right::All].into())
    }
}

/// Parses one or more rights, separated by `+`.
impl FromStr for Rights {
    type Err = RightError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.split('+')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_covers_itself_and_narrower_rights() {
        let cover = |rights: &str, needed: &str| {
            let rights: Rights = rights.parse().unwrap();
            rights.cover(&needed.parse().unwrap())
        };

        for (rights, needed) in [
            ("all", "admin"),
            ("all", "kv/a"),
            ("threads", "threads.read"),
            ("kv", "kv/a"),
            ("kv/a", "kv/a"),
            ("events+threads.read", "threads.read"),
        ] {
            assert!(cover(rights, needed), "{rights} {needed}");
        }
        for (rights, needed) in [
            ("threads.read", "threads"),
            ("kv/a", "kv"),
            ("kv/a", "kv/b"),
            ("kv/a+kv/b", "kv"),
            ("threads+scopes+kv+events+webhooks+owners", "admin"),
        ] {
            assert!(!cover(rights, needed), "{rights} {needed}");
        }
        assert_eq!("".parse::<Rights>(), Err(RightError("".into())));
        assert_eq!(
            "threads,kv".parse::<Rights>(),
            Err(RightError("threads,kv".into()))
        );
        assert_eq!("kv/".parse::<Rights>(), Err(RightError("kv/".into())));
    }
}
