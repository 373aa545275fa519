use actix_web::rt::net::{TcpListener, TcpStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::*;

/// A span that is long enough for a client to make progress, even on a slow machine.
const LONG_SPAN: Duration = Duration::from_secs(10);

async fn pair(span: Duration) -> (PacedStream, TcpStream) {
    pair_with(65_536, 65_536, span).await
}

async fn pair_with(
    send_bytes: usize,
    receive_bytes: usize,
    span: Duration,
) -> (PacedStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = TcpStream::connect(address).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    // otherwise the system buffers megabytes before the writer waits
    SockRef::from(&stream)
        .set_send_buffer_size(send_bytes)
        .unwrap();
    SockRef::from(&client)
        .set_recv_buffer_size(receive_bytes)
        .unwrap();
    let idleness = Idleness::new(ConnectionState::default(), Duration::from_secs(75));
    let mut paced = PacedStream::new(Outlet::new(stream), idleness, Outbox::start());
    paced.span = span;
    (paced, client)
}

#[actix_web::test]
async fn a_client_that_reads_too_slowly_times_out() {
    let (mut paced, mut client) = pair(Duration::from_millis(200)).await;
    let dripping = actix_web::rt::spawn(async move {
        while client.read_u8().await.is_ok() {
            sleep(Duration::from_millis(5)).await;
        }
    });

    let written = paced.write_all(&vec![b'x'; 4 << 20]).await;

    assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
    // the system's buffers would take minutes to drain
    dripping.abort();
}

#[actix_web::test]
async fn a_client_that_reads_all_waiting_responses_does_not_time_out() {
    // each read opens the client's TCP window immediately, but frees too little space for the system to report it
    let (mut paced, mut client) = pair_with(425_984, 262_144, LONG_SPAN).await;
    // writes until responses are waiting
    let answer = [b'x'; 1_000];
    while let Ok(written) = timeout(Duration::from_millis(20), async {
        paced.write_all(&answer).await?;
        paced.flush().await?;
        tokio::task::yield_now().await;
        Ok::<_, io::Error>(())
    })
    .await
    {
        written.unwrap();
    }
    let reading = actix_web::rt::spawn(async move {
        client.read_exact(&mut vec![0; 150_000]).await.unwrap();
        client
    });

    // waits for longer than the span
    let next = async {
        paced.write_all(&answer).await.unwrap();
        paced.flush().await.unwrap();
    };
    timeout(LONG_SPAN * 10, next).await.unwrap();

    reading.await.unwrap();
}

#[actix_web::test]
async fn written_bytes_arrive_after_the_stream_is_dropped() {
    let (mut paced, mut client) = pair(LONG_SPAN).await;
    let answer = [b'x'; 1_000];
    let mut written_bytes = 0;
    while let Ok(written) = timeout(Duration::from_millis(20), async {
        paced.write_all(&answer).await?;
        written_bytes += answer.len();
        paced.flush().await?;
        tokio::task::yield_now().await;
        Ok::<_, io::Error>(())
    })
    .await
    {
        written.unwrap();
    }

    drop(paced);

    let mut received = Vec::new();
    client.read_to_end(&mut received).await.unwrap();
    assert_eq!(received.len(), written_bytes);
}

#[actix_web::test]
async fn waiting_responses_arrive_completely_and_in_order() {
    let (mut paced, mut client) = pair(LONG_SPAN).await;
    let answers: Vec<_> = (0..2_000)
        .map(|n| format!("{n:>1000}").into_bytes())
        .collect();
    let sent = answers.concat();
    let writing = actix_web::rt::spawn(async move {
        for answer in answers {
            paced.write_all(&answer).await.unwrap();
            paced.flush().await.unwrap();
            tokio::task::yield_now().await;
        }
        paced.shutdown().await.unwrap();
    });

    let mut received = Vec::new();
    client.read_to_end(&mut received).await.unwrap();

    assert!(received == sent);
    writing.await.unwrap();
}

#[actix_web::test]
async fn a_slow_client_that_makes_progress_receives_everything() {
    let (mut paced, mut client) = pair(LONG_SPAN).await;
    let reading = actix_web::rt::spawn(async move {
        let (mut total, mut part) = (0, [0; 32_768]);
        loop {
            match client.read(&mut part).await.unwrap() {
                0 => return total,
                count => total += count,
            }
            sleep(Duration::from_millis(20)).await;
        }
    });

    let bytes = vec![b'x'; 2 << 20];
    paced.write_all(&bytes).await.unwrap();
    paced.shutdown().await.unwrap();

    assert_eq!(reading.await.unwrap(), bytes.len());
}
