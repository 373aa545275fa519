use super::outline::{Outline, Piece, Pieces};
use super::tree::{Node, Object, Tree};
use crate::json::text::Json;

/// Merges the object `patch` into `target`. A target that is missing or not an object is treated as `{}`.
///
/// If the target repeats a key that the patch changes, the last value of the key is used. The result is shorter than
/// the target and the patch together, because no byte is copied twice. Takes linear time, except that it sorts the n
/// keys of the patch and needs O(log n) steps to look up a key.
#[must_use]
pub fn merge_json(target: Option<&Json>, patch: &Json) -> Json {
    let target = target.filter(|json| json.is_object());
    let target = target.map_or("{}", Json::as_str);
    let (tree, root) = Tree::read(patch.as_str());
    let outline = Outline::read(target, &tree, &root);
    let mut writer = Writer {
        target,
        tree: &tree,
        outline: &outline,
        written: vec![false; tree.len()],
        out: String::with_capacity(target.len() + patch.as_str().len()),
    };
    writer.object(&root, outline.root());
    Json::from_compact(writer.out)
}

struct Writer<'a> {
    target: &'a str,
    tree: &'a Tree<'a>,
    outline: &'a Outline,
    /// For each member of the patch, whether the target has its key. Members with keys that only the patch has are
    /// written last.
    written: Vec<bool>,
    out: String,
}

impl Writer<'_> {
    fn object(&mut self, patch: &Object, pieces: Pieces) {
        let (target, tree, outline) = (self.target, self.tree, self.outline);
        self.out.push('{');
        let start = self.out.len();
        for piece in outline.pieces(pieces) {
            match piece {
                Piece::Kept(members) => {
                    self.comma(start);
                    self.out.push_str(&target[members.clone()]);
                }
                Piece::Touched { key, index, inside } => {
                    self.written[*index] = true;
                    self.member(start, &target[key.clone()], *index, inside.clone());
                }
            }
        }
        for index in patch.clone() {
            if !self.written[index] {
                self.member(start, tree.member(index).key, index, None);
            }
        }
        self.out.push('}');
    }

    /// Writes the patch member at `index`, merged with the target's member. `inside` contains the pieces of the
    /// target's value if both values are objects.
    fn member(&mut self, start: usize, key: &str, index: usize, inside: Option<Pieces>) {
        let tree = self.tree;
        let value = &tree.member(index).value;
        if let Node::Null = value {
            return;
        }
        self.comma(start);
        self.out.push_str(key);
        self.out.push(':');
        match value {
            Node::Null => {}
            Node::Leaf(text) => self.out.push_str(text),
            Node::Object(patch) => self.object(patch, inside.unwrap_or_default()),
        }
    }

    fn comma(&mut self, start: usize) {
        if self.out.len() > start {
            self.out.push(',');
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::unescaped::unescaped;

    fn merged(target: &str, patch: &str) -> String {
        let target = Json::parse(target).unwrap();
        let patch = Json::parse(patch).unwrap();
        merge_json(Some(&target), &patch).as_str().to_owned()
    }

    /// Covers the examples in RFC 7396, appendix A, that have an object as the patch.
    #[test]
    fn the_examples_of_the_rfc_hold() {
        for (target, patch, result) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (
                r#"{"a":{"b":"c"}}"#,
                r#"{"a":{"b":"d","c":null}}"#,
                r#"{"a":{"b":"d"}}"#,
            ),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"{"a":"b"}"#, r#"{"a":"b"}"#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            (r#"[1,2]"#, r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            assert_eq!(merged(target, patch), result, "{target} + {patch}");
        }
    }

    #[test]
    fn untouched_members_keep_their_text() {
        assert_eq!(
            merged(
                r#"{"n":9007199254740993,"x":1.0,"x":2,"s":"\ud83d"}"#,
                r#"{"\u006e":null,"new":1e400}"#
            ),
            r#"{"x":1.0,"x":2,"s":"\ud83d","new":1e400}"#
        );
    }

    #[test]
    fn the_last_of_repeated_target_keys_is_merged() {
        assert_eq!(
            merged(r#"{"p":{"b":1},"q":0,"p":{"c":2}}"#, r#"{"p":{"d":3}}"#),
            r#"{"q":0,"p":{"c":2,"d":3}}"#
        );
        assert_eq!(merged(r#"{"p":1,"p":2}"#, r#"{"p":3}"#), r#"{"p":3}"#);
        assert_eq!(merged(r#"{"p":1,"p":2}"#, r#"{"p":null}"#), "{}");
    }

    #[test]
    fn escaped_keys_match_unescaped_keys() {
        assert_eq!(
            merged(r#"{"\ud83d\ude00":1}"#, r#"{"😀":2}"#),
            r#"{"\ud83d\ude00":2}"#
        );
        assert_eq!(
            merged(r#"{"\ud83d":1}"#, r#"{"\uD83D":null,"\ude00":2}"#),
            r#"{"\ude00":2}"#
        );
    }

    #[test]
    fn deep_nesting_is_merged() {
        let nested = |leaf: &str| format!("{}{leaf}{}", "{\"a\":".repeat(511), "}".repeat(511));

        assert_eq!(
            merged(&nested("{\"x\":1}"), &nested("{\"y\":2}")),
            nested("{\"x\":1,\"y\":2}")
        );
    }

    fn object() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::json!(null)),
            any::<i32>().prop_map(|number| serde_json::json!(number)),
            Just(serde_json::json!([1, null])),
        ];
        let value = leaf.prop_recursive(4, 32, 4, |inner| {
            prop::collection::btree_map("[a-d\"\\\\\n]", inner, 0..4)
                .prop_map(|map| serde_json::json!(map))
        });
        prop::collection::btree_map("[a-d]", value, 0..4).prop_map(|map| serde_json::json!(map))
    }

    #[derive(Debug, Clone)]
    enum Tree {
        Leaf(&'static str),
        Object(Vec<(&'static str, Self)>),
    }

    impl Tree {
        fn text(&self) -> String {
            match self {
                Self::Leaf(text) => (*text).into(),
                Self::Object(members) => {
                    let member = |(key, value): &(&str, Self)| format!("{key}:{}", value.text());
                    format!(
                        "{{{}}}",
                        members.iter().map(member).collect::<Vec<_>>().join(",")
                    )
                }
            }
        }

        /// A reference implementation of the merge. It is slow, because it compares each key with every other key.
        fn merge(self, patch: Vec<(&'static str, Self)>) -> Self {
            let Self::Object(mut members) = self else {
                return Self::Object(Vec::new()).merge(patch);
            };
            for (index, (key, value)) in patch.iter().enumerate() {
                let is_same = |(other, _): &(&str, Self)| unescaped(other) == unescaped(key);
                if patch[index + 1..].iter().any(is_same) {
                    continue;
                }
                let last = members.iter().rposition(is_same);
                let old = last.map(|last| members[last].clone());
                let merged = match (value, old) {
                    (Self::Leaf("null"), _) => None,
                    (Self::Leaf(text), _) => Some(Self::Leaf(text)),
                    (Self::Object(patch), old) => {
                        let old = old.map_or(Self::Leaf("0"), |(_, old)| old);
                        Some(old.merge(patch.clone()))
                    }
                };
                match (last, merged) {
                    (Some(last), Some(merged)) => members[last].1 = merged,
                    (None, Some(merged)) => members.push((key, merged)),
                    (Some(last), None) => members[last].0 = "gone",
                    (None, None) => {}
                }
                let mut at = 0;
                members.retain(|member| {
                    at += 1;
                    member.0 != "gone" && (!is_same(member) || last.is_none_or(|last| at > last))
                });
            }
            Self::Object(members)
        }
    }

    fn repeating() -> impl Strategy<Value = Tree> {
        let leaf = prop::sample::select(vec!["null", "1.0", "[{\"a\":null}]", "\"}\""]);
        let key = prop::sample::select(vec!["\"a\"", "\"\\u0061\"", "\"b\"", "\"\\ud800\""]);
        let members = move |value| prop::collection::vec((key.clone(), value), 0..6);
        let tree = leaf
            .prop_map(Tree::Leaf)
            .prop_recursive(4, 64, 6, move |inner| members(inner).prop_map(Tree::Object));
        tree.prop_map(|tree| match tree {
            Tree::Leaf(_) => Tree::Object(Vec::new()),
            object => object,
        })
    }

    proptest! {
        #[test]
        fn merges_match_another_implementation_of_the_rfc(
            mut target in object(),
            patch in object(),
        ) {
            let result = merged(&target.to_string(), &patch.to_string());

            let result: serde_json::Value = serde_json::from_str(&result).unwrap();
            json_patch::merge(&mut target, &patch);
            prop_assert_eq!(result, target);
        }

        #[test]
        fn repeated_keys_match_a_slow_reference(
            target in repeating(),
            patch in repeating(),
        ) {
            let result = merged(&target.text(), &patch.text());

            let Tree::Object(patch) = patch else { unreachable!() };
            prop_assert_eq!(result, target.merge(patch).text());
        }

        #[test]
        fn the_result_is_shorter_than_target_and_patch_together(
            target in repeating(),
            patch in repeating(),
        ) {
            let (target, patch) = (target.text(), patch.text());

            prop_assert!(merged(&target, &patch).len() < target.len() + patch.len());
        }
    }
}
