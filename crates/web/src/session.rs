use std::fmt;

use actix_web::http::header::{HeaderName, HeaderValue};

/// Header with the session id of a request.
pub const SESSION_ID: HeaderName = HeaderName::from_static("x-session-id");

/// Identifies a request in its response and in the log: `sess_` followed by 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionId([u8; 37]);

impl SessionId {
    /// Generates a random id.
    #[must_use]
    pub fn random() -> Self {
        let mut text = *b"sess_00000000000000000000000000000000";
        hex::encode_to_slice(rand::random::<[u8; 16]>(), &mut text[5..])
            .expect("the slice has two bytes for each byte of entropy");
        Self(text)
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("an id is ASCII by construction")
    }

    /// Returns the id as a header value.
    #[must_use]
    pub fn to_header(self) -> HeaderValue {
        HeaderValue::from_bytes(&self.0).expect("an id is ASCII by construction")
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
