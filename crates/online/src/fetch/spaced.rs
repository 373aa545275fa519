/// Collects up to `max_chars` characters of text, with white space as on a rendered page.
///
/// White space collapses to a single space, and empty lines are removed. Text that is added verbatim keeps its white
/// space.
#[derive(Debug)]
pub(super) struct Spaced {
    text: String,
    remaining: usize,
    gap: Gap,
}

/// White space before the next character, ordered by width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    Tab,
    Line,
}

impl Spaced {
    pub(super) fn new(max_chars: usize) -> Self {
        Self {
            text: String::new(),
            remaining: max_chars,
            gap: Gap::None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn break_line(&mut self) {
        self.gap = Gap::Line;
    }

    pub(super) fn separate(&mut self) {
        self.gap = self.gap.max(Gap::Tab);
    }

    pub(super) fn add(&mut self, text: &str) {
        for char in text.chars() {
            if self.remaining == 0 {
                return;
            }
            match char {
                char if char.is_whitespace() => self.gap = self.gap.max(Gap::Space),
                char if char.is_control() => {}
                char => self.push(char),
            }
        }
    }

    /// Adds text with all its spaces and line breaks.
    pub(super) fn add_verbatim(&mut self, text: &str) {
        for char in text.chars() {
            if self.remaining == 0 {
                return;
            }
            match char {
                '\n' if self.text.is_empty() => {}
                '\n' if self.gap == Gap::Line => self.put('\n'),
                '\n' => self.gap = Gap::Line,
                char if char.is_control() && char != '\t' => {}
                char => self.push(char),
            }
        }
    }

    /// Returns the text without trailing white space.
    pub(super) fn into_text(mut self) -> String {
        self.text.truncate(self.text.trim_end().len());
        self.text
    }

    fn push(&mut self, char: char) {
        let gap = std::mem::replace(&mut self.gap, Gap::None);
        if !self.text.is_empty() {
            match gap {
                Gap::None => {}
                Gap::Space => self.put(' '),
                Gap::Tab => self.put('\t'),
                Gap::Line => self.put('\n'),
            }
        }
        self.put(char);
    }

    fn put(&mut self, char: char) {
        if let Some(remaining) = self.remaining.checked_sub(1) {
            self.remaining = remaining;
            self.text.push(char);
        }
    }
}
