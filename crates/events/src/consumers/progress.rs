use std::collections::VecDeque;

use threadkeep_domain::Position;

/// The progress in one log: `read` is the last position that was read, and all events up to `cursor` were handled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LogProgress {
    read: Position,
    cursor: Position,
    /// Positions of the events after `cursor`, up to `read`, and whether each event was handled.
    open: VecDeque<(Position, bool)>,
}

impl LogProgress {
    pub(super) fn at(cursor: Position) -> Self {
        Self {
            read: cursor,
            cursor,
            open: VecDeque::new(),
        }
    }

    pub(super) fn read_position(&self) -> Position {
        self.read
    }

    pub(super) fn cursor(&self) -> Position {
        self.cursor
    }

    /// Records that an event was read. Returns false if the event had already been read.
    pub(super) fn pass(&mut self, position: Position, is_handled: bool) -> bool {
        if position <= self.read {
            return false;
        }
        self.read = position;
        self.open.push_back((position, is_handled));
        self.advance_cursor();
        true
    }

    pub(super) fn handle(&mut self, position: Position) {
        let index = self.open.binary_search_by_key(&position, |(open, _)| *open);
        if let Ok(index) = index {
            self.open[index].1 = true;
            self.advance_cursor();
        }
    }

    fn advance_cursor(&mut self) {
        while let Some((position, true)) = self.open.front() {
            self.cursor = *position;
            self.open.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Position {
        Position { ms, seq: 0 }
    }

    #[test]
    fn the_cursor_stays_before_unhandled_events() {
        let mut progress = LogProgress::at(at(1));

        for ms in 2..=4 {
            assert!(progress.pass(at(ms), false));
        }
        assert!(progress.pass(at(5), true));
        assert!(!progress.pass(at(5), true));
        progress.handle(at(3));
        assert_eq!(progress.cursor(), at(1));
        progress.handle(at(2));
        assert_eq!(progress.cursor(), at(3));
        progress.handle(at(4));

        assert_eq!(progress, LogProgress::at(at(5)));
    }
}
