//! Converts HTML to text in one pass over its tokens.
//!
//! No tree is built, so the nesting depth of a page does not matter. One counter tracks the depth of skipped elements,
//! and a second counter tracks `pre` elements. Time is proportional to the size of the page, and memory to `max_chars`.

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use tokio::task::yield_now;

use super::html_text::HtmlText;

/// Number of tokenizer events to process before yielding to other tasks. A step takes well under a millisecond.
const EVENTS_PER_STEP: usize = 4_096;

/// Returns the title and text of a page, up to `max_chars` characters, with each block on its own line.
pub(super) async fn text_of_page(html: &str, is_xhtml: bool, max_chars: usize) -> String {
    let mut text = HtmlText::new(is_xhtml, max_chars);
    for _ in steps(html, &mut text) {
        yield_now().await;
    }
    text.finish()
}

pub(crate) fn text_of_html(html: &str) -> String {
    let mut text = HtmlText::new(false, usize::MAX);
    steps(html, &mut text).for_each(drop);
    text.finish()
}

fn steps(html: &str, text: &mut HtmlText) -> impl Iterator<Item = ()> {
    let has_raw_text = !text.is_xhtml();
    let mut events = 0_usize;
    let mut emitter = CallbackEmitter::new(move |event: CallbackEvent<'_>, _: Span<()>| {
        text.read(&event);
        events += 1;
        events.is_multiple_of(EVENTS_PER_STEP).then_some(())
    });
    // tells the tokenizer which elements contain raw text, so that it does not look for tags in scripts
    emitter.naively_switch_states(has_raw_text);
    Tokenizer::new_with_emitter(html, emitter).map(|Ok(())| ())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    /// Converts a page without yielding to other tasks.
    fn page(html: &str, is_xhtml: bool, max_chars: usize) -> String {
        let mut text = HtmlText::new(is_xhtml, max_chars);
        steps(html, &mut text).for_each(drop);
        text.finish()
    }

    #[test]
    fn a_page_yields_its_title_and_its_blocks() {
        let html = "<!DOCTYPE html><html><head><meta charset=utf-8><style>p{}</style>
            <title>The &amp; title</title><script>if (a < b) '</p>'</script></head>
            <body><h1>Big</h1><p>One  <b>two</b>\n three</p><p>four<br>five</p>
            <ul><li>a</li><li>b</li></ul><!-- no -->
            <table><tr><th>x</th><td>y</td></tr><tr><td>z</td></tr></table>
            <noscript>Turn it on</noscript><template><p>later</p></template>
            <svg><title>pic</title><text>pic</text></svg>end &copy;&nbsp;2026 &lt;b&gt; &#x1F600;</body></html>";

        assert_eq!(
            page(html, false, 1_000),
            "The & title\nBig\nOne two three\nfour\nfive\na\nb\nx\ty\nz\nend © 2026 <b> 😀"
        );
    }

    #[test]
    fn preformatted_text_keeps_its_lines_and_spaces() {
        let html = "<p>a</p><pre>\nfn main() {\n    b();\n\n}\n</pre><p>c  d</p>";

        assert_eq!(page(html, false, 100), "a\nfn main() {\n    b();\n\n}\nc d");
    }

    #[test]
    fn skipped_elements_end_with_their_own_end_tag() {
        for (html, text) in [
            ("a<svg><svg></svg>b</svg>c", "ac"),
            ("a<svg/>b", "ab"),
            ("a<template><svg></template>b</svg>c", "abc"),
            ("a<template/>b</template>c", "ac"),
            ("a<script>'<svg>'</script>b", "ab"),
            ("a</svg></template>b", "ab"),
            ("a<style>b", "a"),
            ("a<script><!--<script></script>--></script>b", "ab"),
            ("a<SCRIPT>b</Script >c", "ac"),
        ] {
            assert_eq!(page(html, false, 100), text, "{html}");
        }
    }

    #[test]
    fn an_element_of_xhtml_may_end_with_its_start_tag() {
        let html = "<html><head><title/><script src='a'/></head><body><pre/>a  b<template/>c</body></html>";

        assert_eq!(page(html, true, 100), "a bc");
    }

    #[test]
    fn the_title_comes_first_and_only_once() {
        let html = "<p>a</p><title>t</title><p>b</p><title>u</title>";

        assert_eq!(page(html, false, 100), "t\na\nb");
        assert_eq!(page("<title> </title>a", false, 100), "a");
        assert_eq!(page("<title>t</title>", false, 100), "t");
    }

    #[test]
    fn text_is_truncated_to_the_character_limit() {
        let html = "<title>ä</title><p>öü</p><p>x</p>";

        for (max_chars, text) in [
            (1, "ä"),
            (2, "ä\n"),
            (3, "ä\nö"),
            (5, "ä\nöü\n"),
            (6, "ä\nöü\nx"),
        ] {
            assert_eq!(page(html, false, max_chars), text);
        }
    }

    #[tokio::test]
    async fn deeply_nested_pages_take_linear_time() {
        for (open, close) in [
            ("<div>", "</div>"),
            ("<table><tr><td>", ""),
            ("<b>", "</b>"),
            ("<svg>", "</svg>"),
            ("<template>", ""),
            ("<p ", ""),
            ("<!--", ""),
            ("&", ""),
            ("<a b=c ", ""),
            ("<title>", ""),
            ("<script>", "</script>"),
            ("<![CDATA[", ""),
            ("</", ""),
        ] {
            let html = format!("a{}b{}c", open.repeat(200_000), close.repeat(200_000));
            let start = Instant::now();

            let text = text_of_page(&html, false, 20_000).await;

            // the conversion takes a few tens of milliseconds in a debug build; quadratic time would mean minutes
            assert!(start.elapsed() < Duration::from_secs(20), "{open}");
            assert!(
                text.starts_with('a') || open == "<title>",
                "{open}: {text:.20}"
            );
        }
    }

    fn piece() -> impl Strategy<Value = String> {
        let tags = [
            "<p>",
            "</p>",
            "<pre>",
            "</pre>",
            "<svg>",
            "</svg>",
            "<svg/>",
            "<template>",
            "</template>",
            "<script>",
            "</script>",
            "<title>",
            "</title>",
            "<td>",
            "<br/>",
            "&amp;",
            "&notit;",
            "&#0;",
            "<!--",
            "-->",
            "<",
            ">",
            "\"",
            "'",
            "=",
            "/",
            "\0",
            "\n",
            " ",
            "ä",
            "a",
        ];
        prop_oneof![
            proptest::sample::select(tags.to_vec()).prop_map(Into::into),
            any::<String>(),
        ]
    }

    proptest! {
        #[test]
        fn any_page_yields_text_within_the_limit(
            pieces in proptest::collection::vec(piece(), 0..60),
            is_xhtml: bool,
            max_chars in 1_usize..200,
        ) {
            let html = pieces.concat();

            let text = page(&html, is_xhtml, max_chars);
            let full_text = page(&html, is_xhtml, usize::MAX);

            prop_assert!(text.chars().count() <= max_chars);
            prop_assert!(!text.contains(|char: char| char.is_control() && !"\n\t".contains(char)));
            let beginning: String = full_text.chars().take(max_chars).collect();
            prop_assert_eq!(text.trim_end(), beginning.trim_end());
        }
    }
}
