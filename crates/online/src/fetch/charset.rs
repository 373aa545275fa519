use std::borrow::Cow;
use std::convert::Infallible;

use encoding_rs::{Encoding, UTF_8};
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

use super::form::Form;

/// Number of initial bytes in which a page may declare its character set (HTML standard, "prescan a byte stream").
const PRESCAN_BYTES: usize = 1_024;

/// Decodes a page. Replaces invalid bytes.
///
/// A byte order mark takes precedence over the `content-type` header, and the header takes precedence over the page's
/// own declaration. The default is UTF-8.
pub(super) fn decode<'a>(bytes: &'a [u8], content_type: &str, form: Form) -> Cow<'a, str> {
    let encoding = encoding_of_header(content_type).or_else(|| {
        let head = &bytes[..bytes.len().min(PRESCAN_BYTES)];
        // a declaration that is readable as ASCII cannot be in UTF-16, so `output_encoding` replaces UTF-16 with UTF-8
        let declared = match form {
            Form::Html => encoding_of_meta(head),
            Form::Xml | Form::Xhtml => {
                encoding_of_declaration(head).or_else(|| encoding_of_meta(head))
            }
            Form::Plain => None,
        };
        declared.map(Encoding::output_encoding)
    });
    let (text, _, _) = encoding.unwrap_or(UTF_8).decode(bytes);
    text
}

fn encoding_of_header(content_type: &str) -> Option<&'static Encoding> {
    let mut parameters = content_type.split(';').skip(1);
    let charset = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches('"'))
    });
    Encoding::for_label(charset?.as_bytes())
}

/// Reads the encoding from `<?xml version="1.0" encoding="..."?>`.
fn encoding_of_declaration(head: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(head);
    let (declaration, _) = head.strip_prefix("<?xml")?.split_once("?>")?;
    let (_, value) = declaration.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|char| "\"'".contains(*char))?;
    let (label, _) = value[1..].split_once(quote)?;
    Encoding::for_label(label.as_bytes())
}

/// Reads the encoding from `<meta charset="...">` or `<meta http-equiv="content-type" content="text/html;
/// charset=...">`.
fn encoding_of_meta(head: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(head);
    let (mut found, mut is_meta) = (None, false);
    let mut attribute = Attribute::Other;
    let callback = |event: CallbackEvent<'_>, _: Span<()>| -> Option<Infallible> {
        match event {
            CallbackEvent::OpenStartTag { name } => is_meta = name == b"meta",
            CallbackEvent::AttributeName { name } => {
                attribute = match name {
                    b"charset" => Attribute::Charset,
                    b"content" => Attribute::Content,
                    _ => Attribute::Other,
                };
            }
            CallbackEvent::AttributeValue { value } if is_meta && found.is_none() => {
                found = match attribute {
                    Attribute::Charset => Encoding::for_label(value),
                    Attribute::Content => encoding_of_header(&String::from_utf8_lossy(value)),
                    Attribute::Other => None,
                };
            }
            _ => {}
        }
        None
    };
    let mut emitter = CallbackEmitter::new(callback);
    emitter.naively_switch_states(true);
    let Ok(()) = Tokenizer::new_with_emitter(&*head, emitter).finish();
    found
}

#[derive(Clone, Copy)]
enum Attribute {
    Charset,
    Content,
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(bytes: &[u8], content_type: &str) -> String {
        decode(bytes, content_type, Form::Html).into_owned()
    }

    #[test]
    fn the_header_takes_precedence_over_the_page() {
        let page = b"<meta charset=utf-8>\xe4";

        assert!(html(page, "text/html; charset=ISO-8859-1").ends_with('ä'));
        assert!(html(page, "text/html; Charset=\"latin1\"").ends_with('ä'));
        assert!(html(page, "text/html").ends_with('\u{fffd}'));
    }

    #[test]
    fn a_page_declares_its_character_set() {
        for page in [
            &b"<html><meta charset='windows-1251'><p>\xcf"[..],
            b"<META HTTP-EQUIV=Content-Type CONTENT='text/html; charset=windows-1251'>\xcf",
            b"<!-- <meta charset=utf-8> --><meta name=a content=b><meta charset=windows-1251>\xcf",
            b"<script>'<meta charset=utf-8>'</script><meta charset=windows-1251>\xcf",
        ] {
            assert!(html(page, "text/html").ends_with('П'), "{page:?}");
        }
        let late = [&[b' '; PRESCAN_BYTES][..], b"<meta charset=latin1>\xe4"].concat();
        assert!(html(&late, "text/html").ends_with('\u{fffd}'));
    }

    #[test]
    fn an_xml_declaration_sets_the_character_set() {
        let page = b"<?xml version='1.0' encoding = \"koi8-r\"?><a>\xf0</a>";

        assert!(decode(page, "application/xml", Form::Xml).contains('П'));
        assert!(decode(page, "text/plain", Form::Plain).contains('\u{fffd}'));
    }

    #[test]
    fn a_byte_order_mark_takes_precedence_and_is_removed() {
        assert_eq!(
            html(b"\xef\xbb\xbf\xc3\xa4", "text/html; charset=latin1"),
            "ä"
        );
        assert_eq!(html(b"\xff\xfea\0", "text/html"), "a");
    }

    #[test]
    fn an_ascii_page_that_declares_utf_16_is_decoded_as_utf_8() {
        assert!(html(b"<meta charset=utf-16>a", "text/html").ends_with('a'));
        assert_eq!(html(b"a\0b\0", "text/html; charset=utf-16le"), "ab");
    }
}
