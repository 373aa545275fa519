//! Faults of the service.

use serde::Serialize;

/// Something that may not be.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Finding {
    /// The kind of fault.
    pub(crate) kind: Kind,
    /// The scenario that found it.
    pub(crate) scenario: &'static str,
    /// The request whose answer it was.
    pub(crate) request: Option<&'static str>,
    /// The thread or the scope that it is about.
    pub(crate) thread: Option<String>,
    /// In words.
    pub(crate) detail: String,
}

/// The kinds of what may not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// An acknowledged push is not there.
    MissingPush,
    /// A push is there more often than once.
    DoublePush,
    /// A value is there that nobody has pushed so.
    StrangeValue,
    /// Pushes of one writer are in another order than that of their acknowledgements.
    Disorder,
    /// An answer is not what the contract and what was written before make it.
    WrongAnswer,
    /// It could not be seen whether all is there.
    Unverified,
}

impl Kind {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::MissingPush => "acknowledged pushes are missing",
            Self::DoublePush => "pushes are there more than once",
            Self::StrangeValue => "values are there that nobody pushed",
            Self::Disorder => "pushes are out of order",
            Self::WrongAnswer => "answers were wrong",
            Self::Unverified => "threads could not be verified",
        }
    }
}
