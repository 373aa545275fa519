use std::ops::Range;

use super::tree::{Node, Object, Tree};
use crate::json::members::Cursor;

/// The pieces of a target object and of the nested objects that the patch changes. The size of an outline is at most
/// twelve times the length of the target, because each piece covers at least five bytes of the target.
pub(super) struct Outline {
    pieces: Vec<Piece>,
    root: Pieces,
}

pub(super) type Pieces = Range<usize>;

pub(super) enum Piece {
    /// A range of the target: members that the patch does not change, with the commas between them.
    Kept(Range<usize>),
    /// The last member with a key that the patch changes.
    Touched {
        key: Range<usize>,
        index: usize,
        inside: Option<Pieces>,
    },
}

/// Builds an outline in a single pass over the target. Repeated keys cost no more than other keys.
struct Reader<'a, 't> {
    tree: &'a Tree<'a>,
    target: Cursor<'t>,
    pieces: Vec<Piece>,
    /// The pieces of the objects that are being read. The innermost object is last. A piece is `None` if a later member
    /// has the same key.
    open: Vec<Option<Piece>>,
    /// For each member of the patch, the index of its piece in `open`. Cleared after each object, because the same part
    /// of the patch applies to several objects if the target repeats a key.
    last: Vec<Option<usize>>,
}

impl Outline {
    pub(super) fn read(target: &str, tree: &Tree<'_>, patch: &Object) -> Self {
        let mut reader = Reader {
            tree,
            target: Cursor::new(target),
            pieces: Vec::new(),
            open: Vec::new(),
            last: vec![None; tree.len()],
        };
        let root = reader.object(patch);
        Self {
            pieces: reader.pieces,
            root,
        }
    }

    pub(super) fn root(&self) -> Pieces {
        self.root.clone()
    }

    pub(super) fn pieces(&self, pieces: Pieces) -> &[Piece] {
        &self.pieces[pieces]
    }
}

impl Reader<'_, '_> {
    /// Recurses at most as deep as the patch.
    fn object(&mut self, patch: &Object) -> Pieces {
        let start = self.open.len();
        let mut more = self.target.enter();
        while more {
            let from = self.target.at();
            let key = self.target.key();
            match self.tree.find(patch, key) {
                Some(index) => self.touched(from..from + key.len(), index),
                None => self.kept(from, start),
            }
            more = self.target.next_member();
        }
        self.close(start)
    }

    fn kept(&mut self, from: usize, start: usize) {
        self.target.value();
        let end = self.target.at();
        match self.open[start..].last_mut() {
            Some(Some(Piece::Kept(members))) => members.end = end,
            _ => self.open.push(Some(Piece::Kept(from..end))),
        }
    }

    fn touched(&mut self, key: Range<usize>, index: usize) {
        let tree = self.tree;
        let inside = match &tree.member(index).value {
            Node::Object(patch) if self.target.peek() == Some(b'{') => Some(self.object(patch)),
            _ => {
                self.target.value();
                None
            }
        };
        if let Some(earlier) = self.last[index].replace(self.open.len()) {
            self.open[earlier] = None;
        }
        self.open.push(Some(Piece::Touched { key, index, inside }));
    }

    fn close(&mut self, start: usize) -> Pieces {
        let moved = self.pieces.len();
        for piece in self.open.drain(start..).flatten() {
            if let Piece::Touched { index, .. } = piece {
                self.last[index] = None;
            }
            self.pieces.push(piece);
        }
        moved..self.pieces.len()
    }
}
