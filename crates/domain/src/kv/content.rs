/// The media type of a body, stored unchanged: `type/subtype` with optional parameters (RFC 9110, section 8.3.1). Up to
/// 255 ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentType(Box<str>);

/// The encoding of a body, stored unchanged: a comma-separated list of names (RFC 9110, section 8.4). Up to 64 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentEncoding(Box<str>);

/// An invalid content type or encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// An invalid or oversized media type.
    #[error("a content type is `type/subtype` with optional parameters, at most 255 bytes")]
    Type,
    /// An invalid or oversized list of names.
    #[error("a content encoding is a list of names of at most 64 bytes")]
    Encoding,
    /// A header that is not printable ASCII, or is repeated.
    #[error("content type and encoding must be printable ASCII, given once")]
    Header,
}

impl ContentType {
    /// Parses a media type.
    pub fn new(text: &str) -> Result<Self, ContentError> {
        let text = text.trim_matches([' ', '\t']);
        let is_printable = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
        let essence = text.split(';').next().unwrap_or_default();
        let parts = essence.trim_end_matches([' ', '\t']).split_once('/');
        let is_type = parts.is_some_and(|(kind, of)| is_token(kind) && is_token(of));
        if !is_type || text.len() > 255 || !text.bytes().all(is_printable) {
            return Err(ContentError::Type);
        }
        Ok(Self(text.into()))
    }

    /// Returns `application/octet-stream`, the type of a body without a content type.
    #[must_use]
    pub fn unknown() -> Self {
        Self("application/octet-stream".into())
    }

    /// Returns the media type as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ContentEncoding {
    /// Parses an encoding.
    pub fn new(text: &str) -> Result<Self, ContentError> {
        let text = text.trim_matches([' ', '\t']);
        let mut names = text.split(',').map(|name| name.trim_matches([' ', '\t']));
        if text.len() > 64 || !names.all(is_token) {
            return Err(ContentError::Encoding);
        }
        Ok(Self(text.into()))
    }

    /// Returns the encoding as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns whether a text is a token (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_stored_unchanged() {
        for text in [
            "text/html",
            "TEXT/x; charset=\"utf 8\";a=b=c",
            "application/vnd.api+json ; q",
        ] {
            assert_eq!(ContentType::new(text).unwrap().as_str(), text);
        }
        let long = |bytes: usize| format!("text/{}", "x".repeat(bytes - 5));
        assert!(ContentType::new(&long(255)).is_ok());
        for bad in [
            "",
            "text",
            "text/",
            "/html",
            "te xt/a",
            "text/a\r\nb",
            "é/a",
            &long(256),
        ] {
            assert_eq!(ContentType::new(bad), Err(ContentError::Type), "{bad}");
        }
    }

    #[test]
    fn an_encoding_is_a_list_of_names() {
        for text in ["gzip", "br, gzip", "x-own"] {
            assert_eq!(ContentEncoding::new(text).unwrap().as_str(), text);
        }
        for bad in ["", "a b", "gzip,", "\"", &"x".repeat(65)] {
            assert_eq!(ContentEncoding::new(bad), Err(ContentError::Encoding));
        }
    }
}
