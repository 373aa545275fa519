use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Finding {
    pub(crate) kind: Kind,
    pub(crate) scenario: &'static str,
    pub(crate) request: Option<&'static str>,
    pub(crate) thread: Option<String>,
    pub(crate) detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    MissingPush,
    DoublePush,
    /// A value that no user pushed.
    StrangeValue,
    /// The pushes of one writer are not stored in the order in which they were acknowledged.
    Disorder,
    /// An answer contradicts the API documentation or earlier writes.
    WrongAnswer,
    /// The content could not be read.
    Unverified,
}

impl Kind {
    pub(crate) fn description(self) -> &'static str {
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
