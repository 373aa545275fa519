use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use super::{ScopeError, ScopeName};
use crate::{Heap, ThreadId, heap};

/// Where data is stored: in a scope, or only for the duration of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// `request`: the data is discarded after the response.
    Request,
    /// A scope that outlives the request.
    Kept(ScopeId),
}

/// The id of a scope that outlives the request. The text form is the kind of scope, `:` and an id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScopeId {
    /// `thread:<thread id>`: data that is stored with a thread, and lives for as long as the thread does.
    Thread(ThreadId),
    /// `state:<uuid>`: a state handle, which must be created explicitly.
    State(Uuid),
    /// `session:<id>`: the first write creates the scope.
    Session(ScopeName),
    /// `run:<uuid>`: requires explicit creation.
    Run(Uuid),
    /// `tool:<name>`: private data of one tool.
    Tool(ScopeName),
    /// `personality:<id>`: data that all tools of a personality share.
    Personality(ScopeName),
}

impl ScopeId {
    /// Returns the name of the kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Thread(_) => "thread",
            Self::State(_) => "state",
            Self::Session(_) => "session",
            Self::Run(_) => "run",
            Self::Tool(_) => "tool",
            Self::Personality(_) => "personality",
        }
    }

    /// Returns the thread of a thread scope.
    #[must_use]
    pub fn thread(&self) -> Option<&ThreadId> {
        match self {
            Self::Thread(id) => Some(id),
            _ => None,
        }
    }
}

impl Heap for ScopeId {
    fn heap_bytes(&self) -> u64 {
        match self {
            Self::Session(name) | Self::Tool(name) | Self::Personality(name) => {
                heap::block(name.as_str().len())
            }
            Self::Thread(_) | Self::State(_) | Self::Run(_) => 0,
        }
    }
}

impl FromStr for ScopeId {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, id) = text.split_once(':').ok_or(ScopeError::Kind)?;
        let malformed = |_| ScopeError::Id;
        Ok(match kind {
            "thread" => Self::Thread(id.parse().map_err(|_| ScopeError::Id)?),
            "state" => Self::State(id.parse().map_err(malformed)?),
            "session" => Self::Session(id.parse()?),
            "run" => Self::Run(id.parse().map_err(malformed)?),
            "tool" => Self::Tool(id.parse()?),
            "personality" => Self::Personality(id.parse()?),
            _ => return Err(ScopeError::Kind),
        })
    }
}

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "request" => Ok(Self::Request),
            text => text.parse().map(Self::Kept),
        }
    }
}

impl fmt::Display for ScopeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind();
        match self {
            Self::Thread(id) => write!(f, "{kind}:{id}"),
            Self::State(id) | Self::Run(id) => write!(f, "{kind}:{id}"),
            Self::Session(name) | Self::Tool(name) | Self::Personality(name) => {
                write!(f, "{kind}:{}", name.as_str())
            }
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request => f.write_str("request"),
            Self::Kept(scope) => scope.fmt(f),
        }
    }
}

impl From<ScopeId> for Scope {
    fn from(scope: ScopeId) -> Self {
        Self::Kept(scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scope_is_read_back_from_its_text() {
        for text in [
            "request",
            "thread:thrd_0123456789abcdef0123456789abcdef",
            "state:6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11",
            "session:abc",
            "session:a:b",
            "run:6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11",
            "tool:web search/é".split(' ').next().unwrap(),
            "personality:p",
        ] {
            let scope: Scope = text.parse().unwrap();
            assert_eq!(scope.to_string(), text);
        }
    }

    #[test]
    fn uuids_match_regardless_of_case() {
        let plain: Scope = "run:6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11".parse().unwrap();
        let upper: Scope = "run:6C8B7F2E-3F4A-4A65-9C1E-0F9F3C7C2D11".parse().unwrap();

        assert_eq!(plain, upper);
        assert_eq!(plain.to_string(), upper.to_string());
    }

    #[test]
    fn invalid_scopes_are_rejected() {
        for (text, error) in [
            ("", ScopeError::Kind),
            ("Request", ScopeError::Kind),
            ("request:", ScopeError::Kind),
            ("threads:x", ScopeError::Kind),
            ("session", ScopeError::Kind),
            ("session:", ScopeError::Name),
            ("tool:a b", ScopeError::Name),
            ("thread:abc", ScopeError::Id),
            ("state:abc", ScopeError::Id),
            ("run:", ScopeError::Id),
        ] {
            assert_eq!(text.parse::<Scope>(), Err(error), "{text}");
        }
    }
}
