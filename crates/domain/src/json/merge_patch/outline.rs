//! The parts of its target that a merge patch keeps.

use std::ops::Range;

use super::tree::{Node, Object, Tree};
use crate::json::members::Cursor;

/// The pieces of a target object and of all objects in it that the patch merges into.
///
/// It takes at most twelve times the length of the target: a piece stands for five bytes or more.
pub(super) struct Outline {
    pieces: Vec<Piece>,
    root: Pieces,
}

/// The pieces of one object.
pub(super) type Pieces = Range<usize>;

pub(super) enum Piece {
    /// Members that the patch does not touch, with the commas between them: a range of the target.
    Kept(Range<usize>),
    /// The last member with a key that the patch touches.
    Touched {
        /// The key with its quotes: a range of the target.
        key: Range<usize>,
        /// The place of the patch's member.
        index: usize,
        /// The object to merge into, if both sides have one.
        inside: Option<Pieces>,
    },
}

/// Reads an outline. It steps over each byte of the target once, at whatever depth, and writes
/// nothing, so a key that the target repeats costs no more than any other.
struct Reader<'a, 't> {
    tree: &'a Tree<'a>,
    target: Cursor<'t>,
    pieces: Vec<Piece>,
    /// Pieces of the objects that are being read, the innermost last. None: a later member has the
    /// same key.
    open: Vec<Option<Piece>>,
    /// For each member of the patch, its piece in `open`. Objects that the same patch merges into
    /// are read one after the other, and clear this at their end.
    last: Vec<Option<usize>>,
}

impl Outline {
    /// Reads the target, which is an object.
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

    /// The pieces of the target itself.
    pub(super) fn root(&self) -> Pieces {
        self.root.clone()
    }

    /// The pieces of an object, in the order of the target.
    pub(super) fn pieces(&self, pieces: Pieces) -> &[Piece] {
        &self.pieces[pieces]
    }
}

impl Reader<'_, '_> {
    /// Recursion is as deep as the patch at most.
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

    /// Steps over a value that stays as it is. `from` is where its member begins, and `start` is
    /// where the pieces of its object begin.
    fn kept(&mut self, from: usize, start: usize) {
        self.target.value();
        let end = self.target.at();
        match self.open[start..].last_mut() {
            Some(Some(Piece::Kept(members))) => members.end = end,
            _ => self.open.push(Some(Piece::Kept(from..end))),
        }
    }

    /// Steps over a value that the patch touches, and reads it if the patch merges into it.
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

    /// Moves the pieces of an object that was read to its end.
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
