use std::borrow::Cow;
use std::ops::Range;

use crate::json::members::Cursor;
use crate::json::unescaped::unescaped;

/// A merge patch as a tree. All objects share two lists, whose total size is at most 40 times the length of the patch.
/// If each object had its own list, a patch with many small objects would need 100 times its length in memory.
pub(super) struct Tree<'a> {
    members: Vec<Member<'a>>,
    /// The decoded key and the index of each member, sorted by key within each object.
    index: Vec<(Cow<'a, [u8]>, usize)>,
}

pub(super) type Object = Range<usize>;

/// A quoted key of the patch, and its value.
#[derive(Clone)]
pub(super) struct Member<'a> {
    pub(super) key: &'a str,
    pub(super) value: Node<'a>,
}

#[derive(Clone)]
pub(super) enum Node<'a> {
    Null,
    Leaf(&'a str),
    Object(Object),
}

impl<'a> Tree<'a> {
    /// Parses a patch, and returns the tree and its outermost object. Takes O(n log n) steps for n members.
    pub(super) fn read(patch: &'a str) -> (Self, Object) {
        let mut tree = Self {
            members: Vec::new(),
            index: Vec::new(),
        };
        let root = tree.object(&mut Cursor::new(patch), &mut Vec::new());
        (tree, root)
    }

    pub(super) fn member(&self, index: usize) -> &Member<'a> {
        &self.members[index]
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn find(&self, object: &Object, key: &str) -> Option<usize> {
        let index = &self.index[object.clone()];
        let key = unescaped(key);
        let found = index.binary_search_by(|(other, _)| other.cmp(&key));
        found.ok().map(|at| index[at].1)
    }

    /// Parses an object. `open` contains the members of the enclosing objects. [`crate::json::text::MAX_DEPTH`] limits
    /// the recursion.
    fn object(&mut self, cursor: &mut Cursor<'a>, open: &mut Vec<Member<'a>>) -> Object {
        let start = open.len();
        let mut more = cursor.enter();
        while more {
            let key = cursor.key();
            let value = match cursor.peek() {
                Some(b'{') => Node::Object(self.object(cursor, open)),
                Some(b'n') => {
                    cursor.value();
                    Node::Null
                }
                _ => Node::Leaf(cursor.value()),
            };
            open.push(Member { key, value });
            more = cursor.next_member();
        }
        self.add(open.drain(start..))
    }

    fn add(&mut self, members: impl Iterator<Item = Member<'a>>) -> Object {
        let start = self.members.len();
        self.members.extend(members);
        let keys = self.members[start..]
            .iter()
            .map(|member| unescaped(member.key));
        self.index.extend(keys.zip(start..));
        let index = &mut self.index[start..];
        index.sort_unstable();
        if index.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            self.drop_repeated(start);
        }
        start..self.members.len()
    }

    /// Removes all but the last member with each key from the object that starts at `start`.
    fn drop_repeated(&mut self, start: usize) {
        let members = self.members.split_off(start);
        let mut index = self.index.split_off(start);
        index.reverse();
        index.dedup_by(|(key, _), (last, _)| key == last);
        index.reverse();
        let mut positions: Vec<_> = index.iter().map(|(_, position)| *position).collect();
        positions.sort_unstable();
        let kept = positions
            .iter()
            .map(|position| members[position - start].clone());
        self.members.extend(kept);
        self.index.extend(index.into_iter().map(|(key, position)| {
            let before = positions.partition_point(|other| *other < position);
            (key, start + before)
        }));
    }
}
