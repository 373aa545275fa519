//! Formats and parses cursors. A cursor marks a position in a list. Clients send the cursor back to continue from that
//! position. Each cursor contains an authentication tag, so that a cursor from a different list is rejected.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::answer::ApiResult;
use threadkeep_domain::{
    EntryKey, EventId, KeyRing, Life, Namespace, Position, Stamp, TAG_BYTES, ThreadId,
};
use threadkeep_events::{ThreadCursor, Watermark};
use threadkeep_store::{ArchivePosition, NamespacePosition, OwnedPosition};
use threadkeep_web::ApiError;

pub(crate) trait Cursor: Sized {
    const PURPOSE: &str;

    fn write(&self, out: &mut Vec<u8>);

    /// Parses the bytes. Returns `None` if an incompatible version of the server wrote them.
    fn read(bytes: &[u8]) -> Option<Self>;
}

/// Formats a cursor that is valid only for the list `list_id`.
pub(crate) fn seal<C: Cursor>(ring: &KeyRing, list_id: &[u8], cursor: &C) -> String {
    let mut bytes = vec![0; TAG_BYTES];
    cursor.write(&mut bytes);
    let tag = ring.tag(C::PURPOSE, &[list_id, &bytes[TAG_BYTES..]]);
    bytes[..TAG_BYTES].copy_from_slice(&tag);
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn open<C: Cursor>(ring: &KeyRing, list_id: &[u8], text: &str) -> ApiResult<C> {
    let bytes = URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|_| ApiError::InvalidCursor)?;
    let (tag, rest) = bytes
        .split_first_chunk::<TAG_BYTES>()
        .ok_or(ApiError::InvalidCursor)?;
    if !ring.verify_tag(tag, C::PURPOSE, &[list_id, rest]) {
        return Err(ApiError::InvalidCursor);
    }
    C::read(rest).ok_or(ApiError::InvalidCursor)
}

pub(crate) fn after<C: Cursor>(
    ring: &KeyRing,
    list_id: &[u8],
    text: Option<&str>,
) -> ApiResult<Option<C>> {
    text.map(|text| open(ring, list_id, text)).transpose()
}

pub(crate) fn next<C: Cursor>(ring: &KeyRing, list_id: &[u8], next: Option<C>) -> Option<String> {
    next.map(|next| seal(ring, list_id, &next))
}

fn push(out: &mut Vec<u8>, numbers: &[u64]) {
    for number in numbers {
        out.extend_from_slice(&number.to_be_bytes());
    }
}

fn numbers<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let chunks: &[_; N] = chunks.try_into().ok()?;
    rest.is_empty().then(|| chunks.map(u64::from_be_bytes))
}

impl Cursor for ThreadCursor {
    const PURPOSE: &str = "threadkeep cursor of a thread";

    fn write(&self, out: &mut Vec<u8>) {
        let Self {
            position,
            stamp,
            next_seq,
        } = self;
        push(
            out,
            &[position.ms, position.seq, stamp.version, stamp.life.0],
        );
        // omits `next_seq` if it is 1 (an empty history), as cursors from earlier server versions do
        if *next_seq != 1 {
            push(out, &[*next_seq]);
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let ([ms, seq, version, life], next_seq) = match numbers(bytes) {
            Some(four) => (four, 1),
            None => match numbers(bytes)? {
                // `write` omits 1
                [_, _, _, _, 1] => return None,
                [ms, seq, version, life, next_seq] => ([ms, seq, version, life], next_seq),
            },
        };
        Some(Self {
            position: Position { ms, seq },
            stamp: Stamp {
                version,
                life: Life(life),
            },
            next_seq,
        })
    }
}

impl Cursor for OwnedPosition {
    const PURPOSE: &str = "threadkeep place among an owner's threads";

    fn write(&self, out: &mut Vec<u8>) {
        let (ms, id) = self;
        push(out, &[*ms]);
        id.write(out);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (ms, id) = bytes.split_first_chunk()?;
        Some((u64::from_be_bytes(*ms), Cursor::read(id)?))
    }
}

impl Cursor for ThreadId {
    const PURPOSE: &str = "threadkeep place among all threads";

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        str::from_utf8(bytes).ok()?.parse().ok()
    }
}

impl Cursor for Watermark {
    const PURPOSE: &str = "threadkeep cursor of all threads";

    fn write(&self, out: &mut Vec<u8>) {
        push(out, &[self.0]);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        numbers(bytes).map(|[ms]| Self(ms))
    }
}

impl Cursor for ArchivePosition {
    const PURPOSE: &str = "threadkeep place in the archive";

    fn write(&self, out: &mut Vec<u8>) {
        push(out, &[self.archived_ms]);
        if let Some((id, life)) = &self.archive {
            push(out, &[life.0]);
            out.extend_from_slice(id.as_bytes());
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (archived_ms, rest) = bytes.split_first_chunk()?;
        let archive = match rest.split_first_chunk() {
            None if rest.is_empty() => None,
            None => return None,
            Some((life, id)) => {
                let id: ThreadId = str::from_utf8(id).ok()?.parse().ok()?;
                Some((id, Life(u64::from_be_bytes(*life))))
            }
        };
        Some(Self {
            archived_ms: u64::from_be_bytes(*archived_ms),
            archive,
        })
    }
}

impl Cursor for EventId {
    const PURPOSE: &str = "threadkeep place among failed events";

    fn write(&self, out: &mut Vec<u8>) {
        let Self { bucket, position } = self;
        push(out, &[u64::from(*bucket), position.ms, position.seq]);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let [bucket, ms, seq] = numbers(bytes)?;
        Some(Self {
            bucket: bucket.try_into().ok()?,
            position: Position { ms, seq },
        })
    }
}

impl Cursor for EntryKey {
    const PURPOSE: &str = "threadkeep place in a namespace";

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_str().as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Self::new(str::from_utf8(bytes).ok()?).ok()
    }
}

impl Cursor for NamespacePosition {
    const PURPOSE: &str = "threadkeep place among namespaces";

    fn write(&self, out: &mut Vec<u8>) {
        push(out, &[self.created_ms]);
        out.extend_from_slice(self.namespace.as_str().as_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (created_ms, name) = bytes.split_first_chunk()?;
        Some(Self {
            created_ms: u64::from_be_bytes(*created_ms),
            namespace: Namespace::new(str::from_utf8(name).ok()?).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_domain::SigningKey;

    fn ring(secret: &str) -> KeyRing {
        KeyRing::new(vec![SigningKey::new("main", secret.as_bytes())]).unwrap()
    }

    #[test]
    fn a_cursor_opens_only_with_the_same_key_list_and_type() {
        let ours = ring("ours");
        let cursor = |next_seq| ThreadCursor {
            position: Position {
                ms: 1_700_000_000_123,
                seq: u64::MAX,
            },
            stamp: Stamp {
                version: 7,
                life: Life(u64::MAX),
            },
            next_seq,
        };
        for next_seq in [0, 2, u64::MAX] {
            let text = seal(&ours, b"one", &cursor(next_seq));
            let read = open::<ThreadCursor>(&ours, b"one", &text);
            assert_eq!(read.unwrap(), cursor(next_seq));
        }
        let text = seal(&ours, b"one", &cursor(1));

        let read = open::<ThreadCursor>(&ours, b"one", &text);
        assert_eq!(read.unwrap(), cursor(1));
        assert!(open::<ThreadCursor>(&ours, b"other", &text).is_err());
        assert!(open::<ThreadCursor>(&ring("theirs"), b"one", &text).is_err());
        assert!(open::<Watermark>(&ours, b"one", &text).is_err());
        for bad in ["", "=", "AAAA", &text[1..], &format!("{text}AAAA")] {
            assert!(open::<ThreadCursor>(&ours, b"one", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn archive_positions_round_trip() {
        let ours = ring("ours");
        let last_archive = Some((ThreadId::random(), Life(5)));

        for archive in [None, last_archive] {
            let archived_ms = 9;
            let position = ArchivePosition {
                archived_ms,
                archive,
            };
            let text = seal(&ours, b"", &position);
            assert_eq!(
                open::<ArchivePosition>(&ours, b"", &text).unwrap(),
                position
            );
        }
        assert_eq!(ArchivePosition::read(b"12345678abc"), None);
    }

    #[test]
    fn failed_event_positions_round_trip() {
        let id = EventId {
            bucket: 255,
            position: Position { ms: 7, seq: 8 },
        };
        let mut bytes = Vec::new();
        id.write(&mut bytes);

        assert_eq!(EventId::read(&bytes), Some(id));
        bytes[0] = 1;
        assert_eq!(EventId::read(&bytes), None);
    }

    #[test]
    fn entry_and_namespace_positions_round_trip() {
        let key = EntryKey::new("é/\u{1F600}").unwrap();
        let position = NamespacePosition {
            created_ms: u64::MAX,
            namespace: Namespace::new("é/").unwrap(),
        };
        let (mut key_bytes, mut position_bytes) = (Vec::new(), Vec::new());
        key.write(&mut key_bytes);
        position.write(&mut position_bytes);

        assert_eq!(EntryKey::read(&key_bytes), Some(key));
        assert_eq!(NamespacePosition::read(&position_bytes), Some(position));
        assert_eq!(EntryKey::read(b""), None);
        assert_eq!(EntryKey::read(b"\xff"), None);
        assert_eq!(NamespacePosition::read(&position_bytes[..8]), None);
        assert_eq!(NamespacePosition::read(&position_bytes[..7]), None);
    }

    #[test]
    fn a_watermark_is_eight_bytes() {
        assert_eq!(Watermark::read(&[0; 8]), Some(Watermark(0)));
        assert_eq!(Watermark::read(&[0; 7]), None);
        assert_eq!(Watermark::read(&[0; 9]), None);
    }
}
