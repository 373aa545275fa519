use threadkeep_scripted_upstream::{Call, Failure as Fault, Gate, Reply as Scripts, Upstream};
use tokio::sync::mpsc;

use super::*;
use crate::{AnthropicMessages, OpenAiResponses};

const STREAM: &str = concat!(
    ": hello\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: [DONE]\n\n",
);

fn chunked(body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n")
}

fn whole(body: &str) -> Reply {
    Reply::Text(format!("{}0\r\n\r\n", chunked(body)))
}

fn model(settings: &UpstreamSettings) -> OpenAiChat {
    OpenAiChat::new(&HttpClient::with(Duration::from_millis(1)), settings)
}

fn settings_of(upstream: &Upstream) -> UpstreamSettings {
    UpstreamSettings {
        name: "main".into(),
        url: upstream.url().parse().unwrap(),
        key: Some(upstream.key().parse().unwrap()),
        timeout: MINUTE,
        retries: 2,
        max_answer_bytes: 1_000,
    }
}

fn kinds(upstream: &Upstream) -> [Box<dyn Model>; 3] {
    let settings = UpstreamSettings {
        retries: 1,
        ..settings_of(upstream)
    };
    let root = UpstreamSettings {
        url: upstream.root_url().parse().unwrap(),
        ..settings.clone()
    };
    let http = HttpClient::with(Duration::from_millis(1));
    [
        Box::new(OpenAiChat::new(&http, &settings)),
        Box::new(OpenAiResponses::new(&http, &settings)),
        Box::new(AnthropicMessages::new(&http, &root, 100)),
    ]
}

async fn streamed(settings: &UpstreamSettings) -> (Result<ModelAnswer, UpstreamError>, Vec<Piece>) {
    streamed_by(&model(settings)).await
}

async fn streamed_by(model: &dyn Model) -> (Result<ModelAnswer, UpstreamError>, Vec<Piece>) {
    let (sender, mut receiver) = mpsc::channel(2_000);
    let result = answer(model, MINUTE, Some(&sender)).await;
    drop(sender);
    let mut pieces = Vec::new();
    while let Some(piece) = receiver.recv().await {
        pieces.push(piece);
    }
    (result, pieces)
}

fn shown(pieces: &[Piece]) -> Vec<&str> {
    let shown = pieces.iter().filter_map(|piece| match piece {
        Piece::Message { .. } => None,
        Piece::Text { text, .. } => Some(text.as_str()),
        Piece::Void => Some("!"),
        other => panic!("{other:?}"),
    });
    shown.collect()
}

fn one_text(answer: &ModelAnswer) -> &str {
    let [AnswerPart::Message(content)] = &answer.parts[..] else {
        panic!("{answer:?}");
    };
    let text = content.as_str().split_once(r#""text":""#).unwrap().1;
    text.split_once('"').unwrap().0
}

#[tokio::test]
async fn a_streaming_connection_is_reused() {
    let upstream = Scripted::start([whole(STREAM), whole(STREAM)]).await;
    let model = model(&upstream.settings());
    let (sender, mut receiver) = mpsc::channel(10);

    for _ in 0..2 {
        let answer = answer(&model, MINUTE, Some(&sender)).await.unwrap();

        assert_eq!((one_text(&answer), answer.finish), ("a", Finish::Done));
        let [begun, piece] = [receiver.recv().await, receiver.recv().await];
        assert_eq!(shown(&[begun.unwrap(), piece.unwrap()]), ["a"]);
        // gives the spawned task time to read the rest of the stream
        for _ in 0..500 {
            tokio::task::yield_now().await;
        }
    }

    let request = upstream.requests.lock().unwrap().remove(0);
    let body = r#"{"model":"m","messages":[{"role":"system","content":"hi"},{"role":"user","content":"a"}],"stream":true,"stream_options":{"include_usage":true}}"#;
    assert!(request.ends_with(body), "{request}");
    assert_eq!(upstream.connections.load(Ordering::Relaxed), 1);
    assert!(receiver.try_recv().is_err());
}

#[tokio::test]
async fn pieces_are_sent_before_the_stream_ends() {
    let upstream = Upstream::start().await;
    let gate = Gate::new();
    upstream.script([Scripts::text("12345678").held_after(1, &gate)]);
    let (sender, mut receiver) = mpsc::channel(1);
    let settings = settings_of(&upstream);
    let task = tokio::spawn(async move { answer(&model(&settings), MINUTE, Some(&sender)).await });

    let begun = receiver.recv().await.unwrap();
    let first = receiver.recv().await.unwrap();
    gate.waiting(1).await;
    assert!(!task.is_finished());
    gate.open();
    let second = receiver.recv().await.unwrap();

    assert_eq!(shown(&[begun, first, second]), ["1234", "5678"]);
    let answer = task.await.unwrap().unwrap();
    assert_eq!(one_text(&answer), "12345678");
    assert_eq!(
        (answer.usage.input_tokens, answer.usage.output_tokens),
        (2, 1)
    );
    assert_eq!(upstream.faults(), [""; 0]);
}

#[tokio::test]
async fn an_attempt_that_fails_midway_voids_its_pieces() {
    for (fault, error) in [
        (Fault::CutOff, UpstreamError::Malformed),
        (Fault::EndsEarly, UpstreamError::Malformed),
        (Fault::Garbage, UpstreamError::Malformed),
        (Fault::Error, UpstreamError::Failed),
        (Fault::Hang, UpstreamError::Timeout),
    ] {
        let upstream = Upstream::start().await;
        let mut settings = settings_of(&upstream);
        if fault == Fault::Hang {
            // attempts that do not stall take far less time
            settings.timeout = Duration::from_secs(2);
        }
        let failing = Scripts::text("12345678").fails_after(1, fault);
        let silent = Scripts::text("12345678").fails_after(0, fault);
        upstream.script([failing.clone(), silent.clone(), Scripts::text("ok")]);

        let (answer, pieces) = streamed(&settings).await;

        assert_eq!(one_text(&answer.unwrap()), "ok", "{fault:?}");
        assert_eq!(shown(&pieces), ["1234", "!", "ok"], "{fault:?}");

        settings.retries = 1;
        upstream.script([failing.clone(), failing]);
        let (answer, pieces) = streamed(&settings).await;
        assert_eq!(answer, Err(error.clone()));
        assert_eq!(shown(&pieces), ["1234", "!", "1234", "!"], "{fault:?}");

        settings.retries = 0;
        upstream.script([silent]);
        assert_eq!(streamed(&settings).await, (Err(error), vec![]));
        assert_eq!(upstream.faults(), [""; 0]);
    }
}

#[tokio::test]
async fn each_api_streams_the_same_answer() {
    let upstream = Upstream::start().await;
    let calls = ["a", "b"].map(|id| Call::new("f", r#"{"key":"ä"}"#).id(id));
    let reply = Scripts::text("two words, 😀").and_calls(calls);
    for model in kinds(&upstream) {
        upstream.script([reply.clone(), reply.clone().in_pieces(7, Duration::ZERO)]);

        let whole = answer(&*model, MINUTE, None).await;
        let (streamed, pieces) = streamed_by(&*model).await;

        assert_eq!(streamed, whole, "{model:?}");
        assert_eq!(whole.unwrap().parts.len(), 3);
        let texts = pieces.iter().filter_map(|piece| match piece {
            Piece::Text { part: 0, text, .. } => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(texts.collect::<String>(), "two words, 😀");
        let arguments = pieces.iter().filter_map(|piece| match piece {
            Piece::Arguments { part: 2, text } => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(arguments.collect::<String>(), r#"{"key":"ä"}"#);
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

#[tokio::test]
async fn each_api_detects_a_failure_midway() {
    for (fault, error) in [
        (Fault::CutOff, UpstreamError::Malformed),
        (Fault::EndsEarly, UpstreamError::Malformed),
        (Fault::Garbage, UpstreamError::Malformed),
        (Fault::Error, UpstreamError::Failed),
    ] {
        let upstream = Upstream::start().await;
        for model in kinds(&upstream) {
            let failing = Scripts::text("12345678").fails_after(1, fault);
            upstream.script([
                failing.clone(),
                Scripts::text("ok"),
                failing.clone(),
                failing,
            ]);

            let (answer, pieces) = streamed_by(&*model).await;
            let (failed, void) = streamed_by(&*model).await;

            assert_eq!(one_text(&answer.unwrap()), "ok", "{model:?}");
            assert_eq!(shown(&pieces), ["1234", "!", "ok"], "{model:?}");
            assert_eq!(failed, Err(error.clone()), "{model:?}");
            assert_eq!(shown(&void), ["1234", "!", "1234", "!"]);
        }
        assert_eq!(upstream.faults(), [""; 0]);
    }
}

#[tokio::test]
async fn a_complete_answer_to_a_streaming_request_is_read() {
    for body in [WHOLE.to_owned(), format!(" \r\n{WHOLE}")] {
        let upstream = Scripted::start([reply(200, "", &body)]).await;

        let (answer, pieces) = streamed(&upstream.settings()).await;

        assert_eq!(one_text(&answer.unwrap()), "a");
        assert_eq!(pieces, []);
    }
    for odd in ["", " ", "<html>", "[]", "{"] {
        let upstream = Scripted::start(vec![reply(200, "", odd); 3]).await;
        let (answer, _) = streamed(&upstream.settings()).await;
        assert_eq!(answer, Err(UpstreamError::Malformed), "{odd:?}");
        assert_eq!(upstream.requests(), 3);
    }
}

#[tokio::test]
async fn an_answer_continues_without_a_reader() {
    let upstream = Upstream::start().await;
    let gate = Gate::new();
    let cut = Scripts::text("12345678").held_after(1, &gate);
    upstream.script([cut.fails(Fault::CutOff), Scripts::text("abcdefgh")]);
    let (sender, mut receiver) = mpsc::channel(1);
    let settings = settings_of(&upstream);
    let task = tokio::spawn(async move { answer(&model(&settings), MINUTE, Some(&sender)).await });

    receiver.recv().await.unwrap();
    drop(receiver);
    gate.open();

    assert_eq!(one_text(&task.await.unwrap().unwrap()), "abcdefgh");
    assert!(
        upstream
            .requests()
            .iter()
            .all(|request| request.is_stream())
    );
}

#[tokio::test]
async fn the_size_limit_counts_text_and_not_stream_bytes() {
    let of = |letters: usize| {
        let letter = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
        let (_, end) = STREAM.split_once("\"a\"}}]}\n\n").unwrap();
        format!("{}{end}", letter.repeat(letters))
    };
    let upstream = Scripted::start([whole(&of(1_000)), whole(&of(1_001))]).await;

    let (answer, pieces) = streamed(&upstream.settings()).await;
    assert_eq!(one_text(&answer.unwrap()), "a".repeat(1_000));
    assert_eq!(shown(&pieces).len(), 1_000);

    let (answer, pieces) = streamed(&upstream.settings()).await;
    assert_eq!(answer, Err(UpstreamError::Malformed));
    assert_eq!(pieces.last(), Some(&Piece::Void));
    assert_eq!(upstream.requests(), 2);
}

#[tokio::test]
async fn an_endless_stream_is_abandoned() {
    let line = format!("data: {}", "a".repeat(2_000));
    let event = "data: a\n".repeat(300);
    let comments = ": a\n\n".repeat(400);
    let events = format!("{STREAM}{}", "data: {}\n\n".repeat(26_000));
    let events = events.replace("data: [DONE]\n\n", "");
    for endless in [line, event, comments, events] {
        let upstream = Scripted::start([Reply::Stall(chunked(&endless))]).await;

        let (answer, _) = streamed(&upstream.settings()).await;

        assert_eq!(answer, Err(UpstreamError::Malformed));
        assert_eq!(upstream.requests(), 1);
    }
}
