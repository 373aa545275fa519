use actix_web::http::header::{HeaderMap, HeaderName};

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// A protocol revision. Revisions are dates, which sort as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Revision<'a>(&'a str);

impl<'a> Revision<'a> {
    /// Revision of requests without the header, which was introduced later.
    const UNNAMED: Self = Self("2025-03-26");

    /// Reads the header. The transport rejects unknown revisions.
    pub(super) fn of(headers: &'a HeaderMap) -> Self {
        let named = headers.get(PROTOCOL_VERSION);
        let named = named.and_then(|value| value.to_str().ok());
        named.map_or(Self::UNNAMED, Self)
    }

    pub(super) fn named(date: &'a str) -> Self {
        Self(date)
    }

    /// Returns whether a body may be a batch. Revision 2025-06-18 removed batches.
    pub(super) fn takes_batches(self) -> bool {
        self.0 <= "2025-03-26"
    }

    /// Returns whether requests have no handshake. Revision 2026-07-28 removed the handshake.
    pub(super) fn is_stateless(self) -> bool {
        self.0 >= "2026-07-28"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_the_header_may_be_a_batch() {
        assert!(Revision::of(&HeaderMap::new()).takes_batches());
    }

    #[test]
    fn revisions_differ_by_their_dates() {
        for (date, takes_batches, is_stateless) in [
            ("2024-11-05", true, false),
            ("2025-03-26", true, false),
            ("2025-06-18", false, false),
            ("2025-11-25", false, false),
            ("2026-07-28", false, true),
        ] {
            let revision = Revision::named(date);
            assert_eq!(revision.takes_batches(), takes_batches, "{date}");
            assert_eq!(revision.is_stateless(), is_stateless, "{date}");
        }
    }
}
