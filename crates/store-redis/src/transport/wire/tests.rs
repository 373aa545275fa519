use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use redis::{Value, parse_redis_value};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::{Caller, Driver, Multiplexer, Queue, Scan, value};
use crate::transport::fault::Fault;
use crate::transport::{Command, command};

fn connected(buffer_bytes: usize) -> (Multiplexer, DuplexStream) {
    let (ours, theirs) = duplex(buffer_bytes);
    let queue = Arc::<Queue>::default();
    tokio::spawn(Driver::new(ours, Arc::clone(&queue)).run());
    let caller = Arc::new(Caller(queue));
    (Multiplexer { caller }, theirs)
}

fn ping(count: usize) -> Vec<Command> {
    vec![command("PING"); count]
}

async fn read_pings(theirs: &mut DuplexStream, count: usize) {
    let mut pings = vec![0; b"*1\r\n$4\r\nPING\r\n".len() * count];
    theirs.read_exact(&mut pings).await.unwrap();
}

#[tokio::test]
async fn replies_reach_their_callers_in_order_even_byte_by_byte() {
    let (wire, mut theirs) = connected(1024);
    let (one, two) = (ping(1), ping(2));
    let calls = async { tokio::join!(wire.call(&one), wire.call(&two), wire.call(&one)) };
    let answer = async {
        read_pings(&mut theirs, 4).await;
        for byte in b":1\r\n$2\r\n\r\n\r\n*2\r\n:3\r\n_\r\n-ERR no\r\n" {
            theirs.write_all(&[*byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
    };

    let ((first, second, third), ()) = tokio::join!(calls, answer);

    assert_eq!(first.unwrap(), [Value::Int(1)]);
    let array = Value::Array(vec![Value::Int(3), Value::Nil]);
    assert_eq!(
        second.unwrap(),
        [Value::BulkString(b"\r\n".to_vec()), array]
    );
    assert!(matches!(third.unwrap()[..], [Value::ServerError(_)]));
}

#[tokio::test]
async fn the_reply_to_an_abandoned_call_is_discarded() {
    let (wire, mut theirs) = connected(1024);
    let one = ping(1);
    tokio::select! {
        biased;
        reply = wire.call(&one) => panic!("{reply:?}"),
        () = read_pings(&mut theirs, 1) => {}
    }
    let answer = async {
        read_pings(&mut theirs, 1).await;
        theirs.write_all(b":1\r\n:2\r\n").await.unwrap();
    };

    let (reply, ()) = tokio::join!(wire.call(&one), answer);

    assert_eq!(reply.unwrap(), [Value::Int(2)]);
}

fn script(key: &str, argument: &str) -> Vec<Command> {
    let mut call = command("EVALSHA");
    call.arg("digest").only_key(key).arg(argument);
    vec![call]
}

async fn call_three(answer: &[u8]) -> [Result<Vec<Value>, redis::RedisError>; 3] {
    let expected =
        b"*9\r\n$7\r\nEVALSHA\r\n$6\r\ndigest\r\n$1\r\n3\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n\
        $1\r\nx\r\n$1\r\nx\r\n$1\r\nx\r\n";
    call_all(
        ["1", "2", "3"].map(|key| script(key, "x")),
        expected,
        answer,
    )
    .await
}

/// Sends `calls` together, checks that the server receives `expected`, and replies with `answer`.
async fn call_all(
    calls: [Vec<Command>; 3],
    expected: &[u8],
    answer: &[u8],
) -> [Result<Vec<Value>, redis::RedisError>; 3] {
    let (wire, mut theirs) = connected(1024);
    let [one, two, three] = &calls;
    let calls = async { tokio::join!(wire.call(one), wire.call(two), wire.call(three)) };
    let answered = async {
        let mut read = vec![0; expected.len()];
        theirs.read_exact(&mut read).await.unwrap();
        assert_eq!(read, expected);
        for byte in answer {
            theirs.write_all(&[*byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let ((one, two, three), ()) = tokio::join!(calls, answered);
    [one, two, three]
}

#[tokio::test]
async fn calls_to_one_script_are_batched_and_each_gets_its_own_reply() {
    let [one, two, three] = call_three(b"*3\r\n:1\r\n-ERR no\r\n*1\r\n:3\r\n").await;

    assert_eq!(one.unwrap(), [Value::Int(1)]);
    assert!(matches!(two.unwrap()[..], [Value::ServerError(_)]));
    assert_eq!(three.unwrap(), [Value::Array(vec![Value::Int(3)])]);
}

#[tokio::test]
async fn each_call_of_a_failed_batch_gets_the_error() {
    for reply in call_three(b"-NOSCRIPT no\r\n").await {
        assert!(matches!(reply.unwrap()[..], [Value::ServerError(_)]));
    }
}

#[tokio::test]
async fn a_batch_reply_of_the_wrong_length_ends_the_connection() {
    for reply in call_three(b"*2\r\n").await {
        assert!(reply.is_err());
    }
}

async fn call_guarded(answer: &[u8]) -> [Result<Vec<Value>, redis::RedisError>; 3] {
    let get = |key| {
        let mut get = command("GET");
        get.arg(key);
        get.guarded()
    };
    let calls = [vec![get("1")], ping(1), [vec![get("2")], ping(1)].concat()];
    let expected = b"*1\r\n$4\r\nPING\r\n*3\r\n$4\r\nHDEL\r\n$1\r\n1\r\n$0\r\n\r\n\
        *2\r\n$3\r\nGET\r\n$1\r\n1\r\n*2\r\n$3\r\nGET\r\n$1\r\n2\r\n*1\r\n$4\r\nPING\r\n";
    call_all(calls, expected, answer).await
}

#[tokio::test]
async fn guarded_reads_share_one_guard_and_each_gets_its_own_reply() {
    let [one, two, three] = call_guarded(b":2\r\n:0\r\n:1\r\n:3\r\n:4\r\n").await;

    assert_eq!(one.unwrap(), [Value::Int(1)]);
    assert_eq!(two.unwrap(), [Value::Int(2)]);
    assert_eq!(three.unwrap(), [Value::Int(3), Value::Int(4)]);
}

#[tokio::test]
async fn the_error_of_a_guard_replaces_the_replies_to_its_reads() {
    let error = b":2\r\n-READONLY no\r\n:1\r\n$1\r\nx\r\n:4\r\n";
    let [one, two, three] = call_guarded(error).await;

    let is_error = |value: &Value| matches!(value, Value::ServerError(_));
    assert!(one.unwrap().iter().all(is_error));
    assert_eq!(two.unwrap(), [Value::Int(2)]);
    let three = three.unwrap();
    assert!(three.len() == 2 && three.iter().all(is_error));
}

#[tokio::test]
async fn calls_that_exceed_a_batch_are_sent_in_several_batches() {
    let (wire, mut theirs) = connected(1 << 20);
    let many: Vec<_> = (0..70).map(|key| script(&key.to_string(), "x")).collect();
    let long: Vec<_> = (0..3)
        .map(|key| script(&key.to_string(), &"x".repeat(9_000)))
        .collect();
    let sent = many.iter().chain(&long).map(|call| wire.call(call));
    let calls = futures_util::future::join_all(sent);
    let answered = async {
        // The short calls and the first long call form batches of 32, 32 and 7. Two more long calls are sent alone.
        for writes in [32, 32, 7, 1, 1] {
            let mut line = vec![0; format!("*{}\r\n", 3 + 2 * writes).len()];
            theirs.read_exact(&mut line).await.unwrap();
            assert_eq!(line, format!("*{}\r\n", 3 + 2 * writes).into_bytes());
            for _ in 0..3 + 2 * writes {
                read_word(&mut theirs).await;
            }
            if writes > 1 {
                theirs
                    .write_all(format!("*{writes}\r\n").as_bytes())
                    .await
                    .unwrap();
            }
            theirs.write_all(&b":7\r\n".repeat(writes)).await.unwrap();
        }
    };

    let (replies, ()) = tokio::join!(calls, answered);

    assert_eq!(replies.len(), 73);
    for reply in replies {
        assert_eq!(reply.unwrap(), [Value::Int(7)]);
    }
}

async fn read_word(theirs: &mut DuplexStream) {
    let mut length = String::new();
    while !length.ends_with('\n') {
        let mut byte = [0];
        theirs.read_exact(&mut byte).await.unwrap();
        length.push(byte[0].into());
    }
    let length: usize = length.trim()[1..].parse().unwrap();
    theirs.read_exact(&mut vec![0; length + 2]).await.unwrap();
}

#[tokio::test]
async fn waiting_and_later_calls_fail_when_the_connection_ends() {
    let (wire, mut theirs) = connected(1024);
    let one = ping(1);
    let end = async {
        read_pings(&mut theirs, 2).await;
        theirs.write_all(b":1\r\n:").await.unwrap();
        drop(theirs);
    };

    let (first, second, ()) = tokio::join!(wire.call(&one), wire.call(&one), end);

    assert_eq!(first.unwrap(), [Value::Int(1)]);
    assert!(second.unwrap_err().is_io_error());
    assert!(wire.has_ended());
    assert!(wire.call(&one).await.unwrap_err().is_io_error());
}

#[tokio::test]
async fn the_connection_closes_if_the_server_violates_the_protocol() {
    for reply in [
        "HTTP/1.1 200 OK\r\n",
        ":1\r\n:2\r\n",
        "$x\r\n",
        ">1\r\n:1\r\n",
    ] {
        let (wire, mut theirs) = connected(1024);
        let two = ping(2);
        let answer = async {
            read_pings(&mut theirs, 2).await;
            theirs.write_all(reply.as_bytes()).await.unwrap();
            // a reply that no command expects ends the connection
            theirs.write_all(reply.as_bytes()).await.ok();
            assert_eq!(theirs.read(&mut [0]).await.unwrap(), 0);
        };

        tokio::join!(async { wire.call(&two).await.ok() }, answer);

        assert!(wire.has_ended(), "{reply}");
    }
}

#[tokio::test]
async fn commands_and_replies_may_exceed_the_buffers() {
    let (wire, mut theirs) = connected(64);
    let large = vec![b'x'; 3_000_000];
    let mut echo = command("ECHO");
    echo.arg(&large);
    let echo = [echo];
    let head = format!("*2\r\n$4\r\nECHO\r\n${}\r\n", large.len());
    let answer = async {
        let mut command = vec![0; head.len() + large.len() + 2];
        theirs.read_exact(&mut command).await.unwrap();
        let text = &command[head.len() - format!("${}\r\n", large.len()).len()..];
        theirs.write_all(text).await.unwrap();
    };

    let (reply, ()) = tokio::join!(wire.call(&echo), answer);

    assert!(reply.unwrap() == [Value::BulkString(large)]);
}

#[tokio::test]
async fn an_abandoned_connection_closes_even_if_the_server_accepts_no_data() {
    for buffer_bytes in [4, 1024] {
        let (wire, mut theirs) = connected(buffer_bytes);
        let one = ping(1);
        tokio::select! {
            biased;
            reply = wire.call(&one) => panic!("{reply:?}"),
            () = tokio::task::yield_now() => {}
        }

        drop(wire);

        let mut rest = Vec::new();
        theirs.read_to_end(&mut rest).await.unwrap();
    }
}

#[tokio::test]
async fn a_late_call_times_out_and_other_calls_get_their_replies() {
    let (wire, mut theirs) = connected(1024);
    let one = ping(1);
    // late enough for all calls to be sent
    let now = Instant::now();
    let calls = async {
        tokio::join!(
            wire.exchange(&one, Some(now + Duration::from_secs(60))),
            wire.exchange(&one, Some(now + Duration::from_secs(2))),
            wire.call(&one),
        )
    };
    let answer = async {
        read_pings(&mut theirs, 3).await;
        let late = wire
            .exchange(&one, Some(now + Duration::from_secs(3)))
            .await;
        theirs.write_all(b":1\r\n:2\r\n:3\r\n:4\r\n").await.unwrap();
        late
    };

    let ((first, second, third), late) = tokio::join!(calls, answer);

    assert_eq!(first.unwrap(), ":1\r\n");
    assert!(matches!(second, Err(Fault::Timeout)));
    assert_eq!(third.unwrap(), [Value::Int(3)]);
    assert!(matches!(late, Err(Fault::Timeout)));
    let answer = async {
        read_pings(&mut theirs, 2).await;
        theirs.write_all(b":5\r\n").await.unwrap();
    };
    let (next, ()) = tokio::join!(wire.call(&one), answer);
    assert_eq!(next.unwrap(), [Value::Int(5)]);
}

#[tokio::test]
async fn an_unsent_call_times_out() {
    let (wire, _theirs) = connected(4);
    let one = ping(1);
    let soon = || Instant::now() + Duration::from_millis(20);

    assert!(matches!(
        wire.exchange(&one, Some(soon())).await,
        Err(Fault::Timeout)
    ));
    let more = tokio::join!(
        wire.exchange(&one, Some(soon())),
        wire.exchange(&one, Some(soon()))
    );

    assert!(matches!(more, (Err(Fault::Timeout), Err(Fault::Timeout))));
    assert!(!wire.has_ended());
}

/// Generates any RESP reply except a push.
fn reply() -> impl Strategy<Value = Vec<u8>> {
    let line = "[ -~]{0,12}";
    let leaf = prop_oneof![
        any::<i64>().prop_map(|number| format!(":{number}\r\n").into_bytes()),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(|bytes| {
            [format!("${}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat()
        }),
        line.prop_map(|text| format!("+{text}\r\n").into_bytes()),
        line.prop_map(|text| format!("-ERR {text}\r\n").into_bytes()),
        line.prop_map(|text| format!("={}\r\ntxt:{text}\r\n", text.len() + 4).into_bytes()),
        any::<bool>().prop_map(|is| if is {
            b"#t\r\n".into()
        } else {
            b"#f\r\n".into()
        }),
        Just(b"_\r\n".to_vec()),
        Just(b"$-1\r\n".to_vec()),
        Just(b"*-1\r\n".to_vec()),
        Just(b",1.5\r\n".to_vec()),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        (prop::collection::vec(inner, 0..6), "[*~%]").prop_map(|(values, kind)| {
            let pairs = kind == "%";
            let count = if pairs {
                values.len() / 2
            } else {
                values.len()
            };
            let values = &values[..if pairs { 2 * count } else { count }];
            [format!("{kind}{count}\r\n").into_bytes(), values.concat()].concat()
        })
    })
}

proptest! {
    #[test]
    fn replies_are_parsed_like_in_the_redis_crate_and_end_at_their_last_byte(
        replies in prop::collection::vec(reply(), 1..5),
        steps in prop::collection::vec(1usize..40, 1..20),
    ) {
        let bytes = replies.concat();
        let mut scan = Scan::of(replies.len());
        let mut received = 0;
        for step in steps.iter().cycle() {
            received = (received + step).min(bytes.len());
            let end = scan.end(&bytes[..received]).unwrap();
            prop_assert_eq!(end, (received == bytes.len()).then_some(received));
            if end.is_some() {
                break;
            }
        }

        let values = value::values(&bytes, replies.len()).unwrap();

        for (value, reply) in values.into_iter().zip(&replies) {
            prop_assert_eq!(value, parse_redis_value(reply).unwrap());
        }
    }

    #[test]
    fn arbitrary_bytes_never_cause_a_panic(
        bytes in prop::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'*'), Just(b'%'), Just(b'$'), Just(b'9'), any::<u8>()], 0..60),
    ) {
        Scan::of(2).end(&bytes).ok();
        value::values(&bytes, 2).ok();
    }
}
