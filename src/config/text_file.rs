//! Reads text files that other programs have written. Windows programs may begin UTF-8 text with a byte order mark, or
//! write UTF-16.

use std::path::Path;
use std::{fs, io};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a file, and removes its byte order mark. Rejects UTF-16 with [`InvalidData`](io::ErrorKind::InvalidData).
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = fs::read(path)?;
    remove_byte_order_mark(&mut bytes)?;
    Ok(bytes)
}

/// Like [`read`], and requires UTF-8.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| invalid("it is not UTF-8"))
}

/// Removes a byte order mark from the beginning of `text`. Fails if `text` is UTF-16.
pub(crate) fn remove_byte_order_mark(text: &mut Vec<u8>) -> io::Result<()> {
    match text[..] {
        // UTF-16 that begins with a byte order mark or an ASCII character
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..] => {
            Err(invalid("it is UTF-16: save it as UTF-8"))
        }
        _ => {
            if text.starts_with(BYTE_ORDER_MARK) {
                text.drain(..BYTE_ORDER_MARK.len());
            }
            Ok(())
        }
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_order_marks_are_removed_and_utf_16_is_rejected() {
        let read = |bytes: &[u8]| {
            let mut text = bytes.to_vec();
            remove_byte_order_mark(&mut text).map(|()| text)
        };
        for (bytes, text) in [
            (&b"\xef\xbb\xbfa"[..], &b"a"[..]),
            (b"a", b"a"),
            (b"", b""),
            (b"\xef\xbb\xbf", b""),
        ] {
            assert_eq!(read(bytes).unwrap(), text);
        }
        for bytes in [&b"\xff\xfea\0"[..], b"\xfe\xff\0a", b"a\0b\0", b"\0a"] {
            let refused = read(bytes).unwrap_err().to_string();
            assert_eq!(refused, "it is UTF-16: save it as UTF-8");
        }
    }
}
