use super::texts::TEXTS_MAX;
use super::*;
use crate::answer::{message, output_text};
use threadkeep_domain::CallForm;
use threadkeep_responses::TextKind;

fn ended(draft: Draft) -> Option<(ModelAnswer, Vec<Piece>)> {
    draft.end(Finish::Done, Usage::default()).ok()
}

#[test]
fn a_split_surrogate_pair_becomes_one_piece() {
    let mut draft = Draft::new(100);
    let begun = Json::from_compact("[]");
    let part = draft.begin_message(begun).unwrap();
    draft.pieces().clear();

    for json in ["a\\ud83d", "\\ude00", "\\\\ud83d", "\\uD83D"] {
        let kind_and_index = (TextKind::Text, None);
        draft.text(part, kind_and_index, json).unwrap();
    }
    let (answer, pieces) = ended(draft).unwrap();

    let texts: Vec<_> = pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text { part: 0, text, .. } => text.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    let lone = "\u{fffd}".repeat(3);
    assert_eq!(texts, ["a", "😀", "\\ud83d", &lone]);
    let content = output_text("a\\ud83d\\ude00\\\\ud83d\\uD83D");
    assert_eq!(answer.parts, [message(&[content])]);
}

#[test]
fn arguments_wait_for_the_name() {
    let mut draft = Draft::new(100);
    let part = draft.add_call(CallForm::Function).unwrap();

    draft.arguments(part, "{\\\"a\\\"").unwrap();
    assert_eq!(*draft.pieces(), []);
    draft.name(part, None, "f".into()).unwrap();
    draft.name(part, None, "g".into()).unwrap();
    draft.arguments(part, ":1}").unwrap();
    let (answer, pieces) = ended(draft).unwrap();

    let arguments = |text: &str| Piece::Arguments {
        part,
        text: text.into(),
    };
    let call = Piece::Call {
        part,
        id: None,
        name: "f".into(),
    };
    assert_eq!(pieces, [call, arguments("{\"a\""), arguments(":1}")]);
    let [
        AnswerPart::Call {
            name, arguments, ..
        },
    ] = &answer.parts[..]
    else {
        panic!("{answer:?}");
    };
    assert_eq!((name.as_str(), arguments.as_str()), ("f", "{\"a\":1}"));
}

#[test]
fn parts_begin_in_order_despite_late_names() {
    let mut draft = Draft::new(1_000);
    let first = draft.add_call(CallForm::Function).unwrap();
    let second = draft.add_call(CallForm::Function).unwrap();
    let begun = Json::from_compact("[]");
    let third = draft.begin_message(begun).unwrap();
    let kind_and_index = (TextKind::Text, None);
    draft.text(third, kind_and_index, "a").unwrap();
    draft.name(second, None, "g".into()).unwrap();
    draft.arguments(second, "{}").unwrap();
    assert_eq!(*draft.pieces(), []);

    draft.name(first, None, "f".into()).unwrap();

    let parts: Vec<_> = draft.pieces().iter().map(part_of).collect();
    assert_eq!(parts, [first, second, second, third, third]);
}

#[test]
fn texts_of_a_part_are_limited_and_keep_their_kind() {
    let mut draft = Draft::new(100_000);
    let item = Json::parse(r#"{"type":"reasoning"}"#).unwrap();
    let part = draft.begin_item(item).unwrap();
    let mut text = |kind, index| draft.text(part, (kind, Some(index)), "a");

    for index in 0..TEXTS_MAX / 2 {
        text(TextKind::Summary, index).unwrap();
        text(TextKind::Reasoning, index).unwrap();
    }
    assert!(text(TextKind::Summary, 7).is_ok());
    assert_eq!(text(TextKind::Text, 7), Err(Failure::malformed()));
    assert_eq!(text(TextKind::Summary, TEXTS_MAX), Err(Failure::too_long()));
}

#[test]
fn a_call_without_a_name_fails_the_answer() {
    let mut draft = Draft::new(100);
    let part = draft.add_call(CallForm::Function).unwrap();
    draft.arguments(part, "{}").unwrap();

    assert_eq!(*draft.pieces(), []);
    assert_eq!(ended(draft), None);
}

#[test]
fn bytes_and_parts_are_limited() {
    let mut draft = Draft::new(2);
    let begun = || Json::from_compact("[]");
    let part = draft.begin_message(begun()).unwrap();
    let kind_and_index = (TextKind::Text, None);
    assert!(draft.text(part, kind_and_index, "ab").is_ok());
    assert!(draft.text(part, kind_and_index, "c").is_err());

    let mut draft = Draft::new(0);
    for _ in 0..PARTS_MAX {
        draft.add_call(CallForm::Function).unwrap();
    }
    assert!(draft.begin_message(begun()).is_err());
}
