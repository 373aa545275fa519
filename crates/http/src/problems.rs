//! Error responses in the OpenAPI document. Operations refer to one shared response per status.

use std::collections::BTreeMap;

use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::{Components, Content, OpenApi, Ref, RefOr};
use utoipa::{IntoResponses, Modify};

use super::codes::describe_status;

/// Statuses and the names of their response components. No operation refers to 405, 414, 431 or 500, because any path
/// may return them.
const PROBLEMS: [(&str, &str); 17] = [
    ("400", "BadRequest"),
    ("401", "Unauthorized"),
    ("403", "Forbidden"),
    ("404", "NotFound"),
    ("405", "MethodNotAllowed"),
    ("406", "NotAcceptable"),
    ("409", "Conflict"),
    ("410", "Gone"),
    ("412", "PreconditionFailed"),
    ("413", "ContentTooLarge"),
    ("414", "UriTooLong"),
    ("415", "UnsupportedMediaType"),
    ("422", "UnprocessableContent"),
    ("429", "TooManyRequests"),
    ("431", "RequestHeaderFieldsTooLarge"),
    ("500", "InternalServerError"),
    ("503", "ServiceUnavailable"),
];

macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident = $($status:literal)+;)+) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                references(&[$($status),+])
            }
        }
    )+};
}

problems! {
    ReadProblems = "400" "401" "403" "406" "412" "503";
    WriteProblems = "400" "401" "403" "406" "409" "410" "412" "413" "415" "422" "429" "503";
    StreamProblems = "400" "401" "403" "406" "503";
    ScopeProblems = "400" "401" "403" "404" "406" "409" "410" "412" "413" "415" "422" "429" "503";
    BackEndProblems = "400" "401" "403" "406" "503";
    AnyAnswerProblems = "400" "401" "403" "503";
    /// Errors of an import, in addition to `BodyProblems` and `BackEndProblems`.
    ImportProblems = "409" "410" "422" "429";
    BodyProblems = "413" "415";
    ToolProblems = "400" "406";
    McpUrlProblems = "400" "401" "403" "406" "413" "415";
    PreconditionFailed = "412";
    NotFound = "404";
    Conflict = "409";
    /// Errors of a write that accepts an idempotency key. Includes 413, because the server reads bodies to recognize
    /// retries.
    RepeatProblems = "413" "422" "429";
    Unavailable = "503";
}

fn references(statuses: &[&str]) -> BTreeMap<String, RefOr<Response>> {
    PROBLEMS
        .into_iter()
        .filter(|(status, _)| statuses.contains(status))
        .map(|(status, name)| (status.to_owned(), Ref::from_response_name(name).into()))
        .collect()
}

pub(super) struct Problems;

impl Modify for Problems {
    fn modify(&self, document: &mut OpenApi) {
        let components = document.components.get_or_insert_with(Components::new);
        for (status, name) in PROBLEMS {
            let content = Content::new(Some(Ref::from_schema_name("Problem")));
            let response = ResponseBuilder::new()
                .description(describe_status(status))
                .content("application/problem+json", content);
            let response = RefOr::T(response.build());
            components.responses.insert(name.to_owned(), response);
        }
    }
}
