use proptest::prelude::*;

use super::*;

fn parsed(text: &str) -> String {
    Json::parse(text).unwrap().as_str().to_owned()
}

#[test]
fn only_white_space_between_tokens_is_dropped() {
    assert_eq!(
        parsed(" { \"a b\" :\t[ 1.0 , 1e400,\n-0 ],\r\"\":{ } } "),
        r#"{"a b":[1.0,1e400,-0],"":{}}"#
    );
}

#[test]
fn text_that_parsing_would_lose_is_preserved() {
    for text in [
        "9007199254740993",
        "1E+2",
        r#""\ud83d""#,
        r#""\u0041\/""#,
        r#"{"a":1,"a":2}"#,
        "[]",
        "{}",
    ] {
        assert_eq!(parsed(text), text);
    }
}

#[test]
fn errors_report_line_and_column() {
    let error = Json::parse("{\n  \"a\": tru\n}").unwrap_err();

    assert_eq!((error.line, error.column), (2, 8));
    for bad in [
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\"}",
        "{\"a\":}",
        "{,}",
        "01",
        "1.",
        "1e",
        "-",
        "+1",
        ".5",
        "nul",
        "\"a",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\u{1}\"",
        "[1 2]",
        "1 2",
        "{1:2}",
        "]",
        "\u{feff}1",
        "NaN",
        "'a'",
        "[1}",
        "{\"a\":1]",
    ] {
        assert!(Json::parse(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn nesting_is_allowed_to_512_levels_and_no_deeper() {
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));

    assert!(Json::parse(&nested(MAX_DEPTH)).is_ok());
    assert!(Json::parse(&nested(MAX_DEPTH + 1)).is_err());
}

#[test]
fn depth_ignores_brackets_in_strings() {
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let around = |text: &str| format!(r#"[[],{{"{text}":"{text}"}}]"#);

    for (json, levels) in [
        (nested(7), 7),
        (around(r"[[[[\\"), 2),
        (around(r#"\\\"[[[["#), 2),
        (format!("[{},[1]]", nested(7)), 8),
    ] {
        assert!(is_deeper_than(levels - 1, &json), "{json}");
        assert!(!is_deeper_than(levels, &json), "{json}");
    }
}

#[test]
fn a_separator_is_written_only_in_the_outermost_array() {
    let text = compact("[1, [2, 3], {\"a\": 4, \"b\": [5, 6]}]", b'\n', 9).unwrap();

    assert_eq!(&*text, "[1\n[2,3]\n{\"a\":4,\"b\":[5,6]}]");
    assert_eq!(
        &*compact("{\"a\":[1,2]}", b'\n', 9).unwrap(),
        "{\"a\":[1,2]}"
    );
}

proptest! {
    #[test]
    fn the_parser_accepts_exactly_what_a_json_library_accepts(text in "[\\[\\]{}\",:0-9eE.+\\-a-z \\\\/]{0,24}") {
        let library = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();

        prop_assert_eq!(Json::parse(&text).is_ok(), library);
    }
}
