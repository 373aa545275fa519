#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Html,
    /// HTML in XML syntax.
    Xhtml,
    Xml,
    /// Other text, or JSON.
    Plain,
}

impl Form {
    /// Returns the form for a content type, or `None` if models cannot read that type.
    pub(super) fn of(content_type: &str) -> Option<Self> {
        let name = content_type.split(';').next().unwrap_or_default();
        let name = name.trim().to_ascii_lowercase();
        let (kind, subtype) = name.split_once('/')?;
        match (kind, subtype) {
            ("text", "html") => Some(Self::Html),
            ("application", "xhtml+xml") => Some(Self::Xhtml),
            ("text" | "application", "xml") => Some(Self::Xml),
            ("application", "json") => Some(Self::Plain),
            ("text", _) if !subtype.is_empty() => Some(Self::Plain),
            ("application", _) if subtype.ends_with("+xml") => Some(Self::Xml),
            ("application", _) if subtype.ends_with("+json") => Some(Self::Plain),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_json_and_xml_are_readable() {
        for (content_type, form) in [
            ("text/html", Some(Form::Html)),
            ("Text/HTML; charset=utf-8", Some(Form::Html)),
            ("application/xhtml+xml", Some(Form::Xhtml)),
            ("text/xml", Some(Form::Xml)),
            ("application/rss+xml;charset=utf-8", Some(Form::Xml)),
            ("text/plain", Some(Form::Plain)),
            ("text/markdown", Some(Form::Plain)),
            ("application/json", Some(Form::Plain)),
            ("application/ld+json", Some(Form::Plain)),
            ("application/pdf", None),
            ("application/octet-stream", None),
            ("image/svg+xml", None),
            ("video/mp4", None),
            ("text/", None),
            ("text", None),
            ("", None),
        ] {
            assert_eq!(Form::of(content_type), form, "{content_type}");
        }
    }
}
