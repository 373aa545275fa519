use super::*;

fn ring(names: &[&str]) -> KeyRing {
    KeyRing::new(
        names
            .iter()
            .map(|name| SigningKey::new(*name, name.as_bytes()))
            .collect(),
    )
    .unwrap()
}

const ID: &str = "thrd_0123456789abcdef0123456789abcdef";

/// Expected signature, from Python: `base64.b64encode(hmac.new(b"agentuity", ID, hashlib.sha256).digest())`.
#[test]
fn the_signature_is_hmac_sha256_of_the_id_as_padded_base64() {
    let ring = ring(&["agentuity"]);

    assert_eq!(
        ring.sign(&ID.parse().unwrap()),
        "d3ll8ojzxFLu0GwdiRQ37M8WeVczY+ZkezSgcBwGx3o="
    );
}

#[test]
fn every_key_verifies_and_only_the_signing_key_is_current() {
    let old = ring(&["old"]);
    let both = ring(&["new", "old"]);
    let id: ThreadId = ID.parse().unwrap();

    let by_old = both.verify(ID, &old.sign(&id)).unwrap();
    let by_new = both.verify(ID, &both.sign(&id)).unwrap();

    assert_eq!((&**by_old.key_name, by_old.is_current), ("old", false));
    assert_eq!((&**by_new.key_name, by_new.is_current), ("new", true));
    assert_eq!(old.verify(ID, &both.sign(&id)), None);

    both.clone().sign_with(1);
    assert_eq!(both.sign(&id), old.sign(&id));
    assert!(both.verify(ID, &old.sign(&id)).unwrap().is_current);
    both.sign_with(2);
    assert_eq!(both.signing(), 1);
}

#[test]
fn the_chosen_key_signs_and_the_first_key_derives() {
    let old = ring(&["old"]);
    let chosen = ring(&["old", "new"]).choose("new").unwrap();
    let id: ThreadId = ID.parse().unwrap();

    assert_eq!(chosen.sign(&id), ring(&["new"]).sign(&id));
    assert_eq!(chosen.derive("sub", &[b"a"]), old.derive("sub", &[b"a"]));
    let unknown = ring(&["old"]).choose("new").unwrap_err();
    assert_eq!(unknown, KeyRingError::UnknownName);
}

#[test]
fn fingerprints_depend_on_the_secret_not_the_name() {
    let print = |secret: &[u8]| SigningKey::new("main", secret).print();

    assert_eq!(print(b"a"), print(b"a"));
    assert_ne!(print(b"a"), print(b"b"));
    assert_eq!(print(b"a").digest.len(), 16);
}

#[test]
fn hex_signatures_are_accepted_but_not_current() {
    let ring = ring(&["key"]);
    let id: ThreadId = ID.parse().unwrap();
    let mac = STANDARD.decode(ring.sign(&id)).unwrap();

    for text in [hex::encode(&mac), hex::encode_upper(&mac)] {
        assert!(!ring.verify(ID, &text).unwrap().is_current);
    }
}

#[test]
fn truncated_or_changed_signatures_are_rejected() {
    let ring = ring(&["key"]);
    let signature = ring.sign(&ID.parse().unwrap());
    let other_id = ID.replace("0123", "0124");

    assert_eq!(ring.verify(&other_id, &signature), None);
    for bad in [
        "",
        "=",
        &signature[..43],
        &signature.replace('=', ""),
        &"0".repeat(64),
    ] {
        assert_eq!(ring.verify(ID, bad), None, "{bad}");
    }
}

#[test]
fn a_tag_verifies_for_its_purpose_and_parts_with_any_key() {
    let old = ring(&["old"]);
    let both = ring(&["new", "old"]);
    let tag = old.tag("cursor", &[b"a", b"b"]);

    assert!(both.verify_tag(&tag, "cursor", &[b"a", b"b"]));
    assert!(!both.verify_tag(&both.tag("cursor", &[b"ab", b""]), "cursor", &[b"a", b"b"]));
    assert!(!both.verify_tag(&tag, "other", &[b"a", b"b"]));
    assert!(!ring(&["new"]).verify_tag(&tag, "cursor", &[b"a", b"b"]));
}
