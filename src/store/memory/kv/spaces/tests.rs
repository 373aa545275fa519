use super::*;
use crate::domain::ContentType;

#[test]
fn a_list_passes_over_so_many_expired_entries_at_once() {
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
    for number in 0..2 * PASSED_OVER {
        let put = spaces.put(&namespace, &key(number), &entry, None, 0);
        assert!(put.is_ok());
    }
    let last = key(99_999);
    entry.lifetime = None;
    spaces.put(&namespace, &last, &entry, None, 0).unwrap();

    let (mut pages, mut after, mut found) = (0, None, Vec::new());
    loop {
        let page = spaces.list(&namespace, "", after.as_ref(), 10, 60_000);
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
