use super::*;
use threadkeep_domain::ContentType;
use threadkeep_domain::Lifetime;
use threadkeep_store::{EntryTerms, NewEntry};

#[test]
fn a_page_skips_a_limited_number_of_expired_entries() {
    let mut spaces = Spaces::default();
    let namespace = Namespace::new("n").unwrap();
    let key = |number: usize| EntryKey::new(&format!("{number:05}")).unwrap();
    let mut entry = NewEntry {
        body: bytes::Bytes::new(),
        content_type: ContentType::new("text/plain").unwrap(),
        content_encoding: None,
        lifetime: Some(Lifetime::For(std::time::Duration::from_secs(60))),
        default_lifetime: Lifetime::Forever,
    };
    for number in 0..2 * EXPIRED_SKIPPED_MAX {
        let put = spaces.put(&namespace, &key(number), &entry, EntryTerms::default(), 0);
        assert!(put.is_ok());
    }
    let last = key(99_999);
    entry.lifetime = None;
    let put = spaces.put(&namespace, &last, &entry, EntryTerms::default(), 0);
    assert!(put.is_ok());

    let (mut pages, mut after, mut found) = (0, None, Vec::new());
    loop {
        let range = EntryRange {
            after: after.as_ref(),
            ..EntryRange::default()
        };
        let page = spaces.list(&namespace, range, 10, 60_000);
        pages += 1;
        found.extend(page.entries.into_iter().map(|(key, _)| key));
        after = page.next;
        if after.is_none() {
            break;
        }
    }

    assert_eq!(found, [last]);
    assert_eq!(pages, 2);
}
