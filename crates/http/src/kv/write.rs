use actix_web::HttpRequest;
use actix_web::http::header::IF_NONE_MATCH;
use actix_web::web::Bytes;

use super::content::EntryContent;
use crate::answer::ApiResult;
use crate::request::{body_of, extract, idempotency, if_match, invalid};
use threadkeep_domain::Precondition;
use threadkeep_store::EntryTerms;

/// Headers of a write: `If-Match` or `If-None-Match: *`, and `Idempotency-Key`.
#[derive(Debug)]
pub(crate) struct EntryConditions(pub(crate) EntryTerms);

#[derive(Debug)]
pub(crate) struct RawBody {
    pub(crate) bytes: Bytes,
    pub(crate) content: EntryContent,
}

impl EntryConditions {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let body = body_of(request)?;
        let key = idempotency(request, &body)?;
        let terms = |precondition| {
            Ok(Self(EntryTerms {
                precondition,
                idempotency: key.map(|(_, key)| key),
                remembers_mismatch: false,
            }))
        };
        let required = if_match(request)?;
        let mut none_match = request.headers().get_all(IF_NONE_MATCH);
        let refused = |detail: &str| Err(invalid(detail));
        match (required, none_match.next(), none_match.next()) {
            (required, None, _) => terms(required),
            (None, Some(any), None) if any == "*" => terms(Some(Precondition::Version(0))),
            (None, ..) => refused("If-None-Match of a write must be `*`"),
            (Some(_), ..) => refused("If-Match does not go with If-None-Match"),
        }
    }
}

impl RawBody {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        Ok(Self {
            content: EntryContent::of(request.headers())?,
            bytes: body_of(request)?,
        })
    }
}

extract!(EntryConditions, RawBody);
