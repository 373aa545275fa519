use html5gum::emitters::callback::CallbackEvent;

use super::spaced::Spaced;

/// Elements that are skipped with their content.
const SKIPPED_ELEMENTS: [&[u8]; 5] = [b"script", b"style", b"noscript", b"template", b"svg"];
/// Index of `svg` in [`SKIPPED_ELEMENTS`].
const SVG: usize = 4;

#[derive(Debug)]
pub(super) struct HtmlText {
    is_xhtml: bool,
    max_chars: usize,
    title: Spaced,
    body: Spaced,
    /// Index of the skipped element in [`SKIPPED_ELEMENTS`], and its nesting depth.
    skipped: Option<(usize, u32)>,
    opening: Opening,
    is_in_title: bool,
    has_title: bool,
    /// Number of open `pre` elements.
    pre: u32,
    /// True if the next character directly follows `<pre>`. If that character is a line break, the text omits it.
    is_after_pre: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    /// Index in [`SKIPPED_ELEMENTS`].
    Skipped(usize),
    Title,
    Pre,
    Other,
}

impl HtmlText {
    pub(super) fn new(is_xhtml: bool, max_chars: usize) -> Self {
        Self {
            is_xhtml,
            max_chars,
            title: Spaced::new(max_chars),
            body: Spaced::new(max_chars),
            skipped: None,
            opening: Opening::Other,
            is_in_title: false,
            has_title: false,
            pre: 0,
            is_after_pre: false,
        }
    }

    /// Returns whether the page is XHTML. In XHTML, `/>` closes any element, and all content is parsed as markup.
    pub(super) fn is_xhtml(&self) -> bool {
        self.is_xhtml
    }

    pub(super) fn read(&mut self, event: &CallbackEvent<'_>) {
        match event {
            CallbackEvent::OpenStartTag { name } => self.open(name),
            CallbackEvent::CloseStartTag { self_closing } => self.opened(*self_closing),
            CallbackEvent::EndTag { name } => self.close(name),
            CallbackEvent::String { value } => self.text(&String::from_utf8_lossy(value)),
            _ => {}
        }
    }

    /// Returns the title, followed by the body.
    pub(super) fn finish(self) -> String {
        let (title, body) = (self.title.into_text(), self.body.into_text());
        match (title.is_empty(), body.is_empty()) {
            (true, _) => body,
            (false, true) => title,
            (false, false) => {
                let pieces = title.chars().chain(['\n']).chain(body.chars());
                pieces.take(self.max_chars).collect()
            }
        }
    }

    fn open(&mut self, name: &[u8]) {
        self.is_after_pre = false;
        let skipped = SKIPPED_ELEMENTS.iter().position(|element| *element == name);
        self.opening = match (skipped, name) {
            (Some(index), _) => Opening::Skipped(index),
            (None, b"title") => Opening::Title,
            (None, b"pre") => Opening::Pre,
            _ => Opening::Other,
        };
        if self.skipped.is_none() {
            self.boundary(name);
        }
    }

    fn opened(&mut self, self_closing: bool) {
        let opening = std::mem::replace(&mut self.opening, Opening::Other);
        // in HTML, `/>` closes only `svg` elements
        let is_svg = opening == Opening::Skipped(SVG);
        if self_closing && (self.is_xhtml || is_svg) {
            return;
        }
        match (opening, &mut self.skipped) {
            (Opening::Skipped(index), Some((open, depth))) if *open == index => *depth += 1,
            (_, Some(_)) | (Opening::Other, None) => {}
            (Opening::Skipped(index), None) => self.skipped = Some((index, 1)),
            (Opening::Title, None) => self.is_in_title = true,
            (Opening::Pre, None) => {
                self.pre += 1;
                self.is_after_pre = true;
            }
        }
    }

    fn close(&mut self, name: &[u8]) {
        if let Some((index, depth)) = &mut self.skipped {
            if SKIPPED_ELEMENTS[*index] == name {
                *depth -= 1;
                if *depth == 0 {
                    self.skipped = None;
                }
            }
            return;
        }
        match name {
            b"title" => {
                self.has_title |= self.is_in_title && !self.title.is_empty();
                self.is_in_title = false;
            }
            b"pre" => self.pre = self.pre.saturating_sub(1),
            _ => {}
        }
        self.boundary(name);
    }

    fn boundary(&mut self, name: &[u8]) {
        match name {
            b"td" | b"th" => self.body.separate(),
            name if is_block(name) => self.body.break_line(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        let text = match std::mem::take(&mut self.is_after_pre) {
            true => text.strip_prefix('\n').unwrap_or(text),
            false => text,
        };
        if self.skipped.is_some() {
            return;
        }
        match (self.is_in_title, self.has_title) {
            (true, false) => self.title.add(text),
            (true, true) => {}
            (false, _) if self.pre > 0 => self.body.add_verbatim(text),
            (false, _) => self.body.add(text),
        }
    }
}

fn is_block(name: &[u8]) -> bool {
    matches!(
        name,
        b"address"
            | b"article"
            | b"aside"
            | b"blockquote"
            | b"body"
            | b"br"
            | b"caption"
            | b"center"
            | b"dd"
            | b"details"
            | b"dialog"
            | b"dir"
            | b"div"
            | b"dl"
            | b"dt"
            | b"fieldset"
            | b"figcaption"
            | b"figure"
            | b"footer"
            | b"form"
            | b"h1"
            | b"h2"
            | b"h3"
            | b"h4"
            | b"h5"
            | b"h6"
            | b"head"
            | b"header"
            | b"hgroup"
            | b"hr"
            | b"html"
            | b"iframe"
            | b"legend"
            | b"li"
            | b"main"
            | b"menu"
            | b"nav"
            | b"ol"
            | b"optgroup"
            | b"option"
            | b"p"
            | b"pre"
            | b"search"
            | b"section"
            | b"select"
            | b"summary"
            | b"table"
            | b"tbody"
            | b"textarea"
            | b"tfoot"
            | b"thead"
            | b"title"
            | b"tr"
            | b"ul"
    )
}
