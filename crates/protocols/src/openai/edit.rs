//! Edits JSON objects as text, which preserves exact numbers, the order of members, and members that are not edited.

use threadkeep_domain::{is_named, members};

pub(super) struct Edit<'a> {
    pub(super) name: &'static str,
    pub(super) json: &'a str,
}

/// Replaces the values of members in a compact object, and appends members that are missing.
pub(super) fn edited(object: &str, edits: &[Edit<'_>]) -> String {
    let added: usize = edits
        .iter()
        .map(|edit| edit.name.len() + edit.json.len() + 4)
        .sum();
    let mut text = String::with_capacity(object.len() + added);
    let mut is_done = vec![false; edits.len()];
    let mut separator = '{';
    for (key, value) in members(object) {
        let edit = edits.iter().position(|edit| is_named(key, edit.name));
        let value = match edit {
            Some(index) => {
                is_done[index] = true;
                edits[index].json
            }
            None => value,
        };
        text.push(separator);
        text.push_str(key);
        text.push(':');
        text.push_str(value);
        separator = ',';
    }
    for (edit, _) in edits.iter().zip(is_done).filter(|(_, done)| !done) {
        text.push(separator);
        text.push('"');
        text.push_str(edit.name);
        text.push_str("\":");
        text.push_str(edit.json);
        separator = ',';
    }
    if separator == '{' {
        text.push(separator);
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(object: &str, edits: &[(&'static str, &str)]) -> String {
        let edits: Vec<_> = edits
            .iter()
            .map(|(name, json)| Edit { name, json })
            .collect();
        edited(object, &edits)
    }

    #[test]
    fn edits_append_new_members_and_preserve_the_order() {
        for (object, edits, expected) in [
            ("{}", &[][..], "{}"),
            ("{}", &[("a", "1"), ("b", "[]")], r#"{"a":1,"b":[]}"#),
            (
                r#"{"x":1.0,"a":null,"x":1e400}"#,
                &[("a", "2"), ("b", "3")],
                r#"{"x":1.0,"a":2,"x":1e400,"b":3}"#,
            ),
            (
                r#"{"a":1,"\u0061":2}"#,
                &[("a", "3")],
                r#"{"a":3,"\u0061":3}"#,
            ),
        ] {
            assert_eq!(with(object, edits), expected, "{object}");
        }
    }
}
