//! The type and encoding of an entry's bytes, in the terms of HTTP.

/// The media type of an entry's body, kept unchanged: `type/subtype` (RFC 9110, section 8.3.1) with
/// any parameters, at most 255 bytes of printable ASCII.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentType(Box<str>);

/// The encoding of an entry's body, such as `gzip`, kept unchanged: names with commas (RFC 9110,
/// section 8.4), at most 64 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentEncoding(Box<str>);

/// Errors of content types and encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// Not a media type, or too long.
    #[error("a content type is `type/subtype` with optional parameters, at most 255 bytes")]
    Type,
    /// Not a list of names, or too long.
    #[error("a content encoding is a list of names of at most 64 bytes")]
    Encoding,
    /// A header that is not text, or a repeated one.
    #[error("content type and encoding must be printable ASCII, given once")]
    Header,
}

impl ContentType {
    /// Parses a media type.
    ///
    /// # Errors
    /// [`ContentError::Type`].
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

    /// The type of a body without a content type: `application/octet-stream`.
    #[must_use]
    pub fn unknown() -> Self {
        Self("application/octet-stream".into())
    }

    /// The media type as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ContentEncoding {
    /// Parses an encoding.
    ///
    /// # Errors
    /// [`ContentError::Encoding`].
    pub fn new(text: &str) -> Result<Self, ContentError> {
        let text = text.trim_matches([' ', '\t']);
        let mut names = text.split(',').map(|name| name.trim_matches([' ', '\t']));
        if text.len() > 64 || !names.all(is_token) {
            return Err(ContentError::Encoding);
        }
        Ok(Self(text.into()))
    }

    /// The encoding as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// RFC 9110, section 5.6.2.
fn is_token(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_media_type_is_taken_as_it_came() {
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
