//! The subset of HTTP that clients of upstreams use.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

const BODY_MAX_BYTES: usize = 64 * 1024 * 1024;
const LINE_MAX_BYTES: u64 = 64 * 1024;
const LINES_MAX: usize = 256;

#[derive(Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    /// Without the query.
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

pub(crate) async fn read<R: AsyncBufRead + Unpin>(
    reader: &mut R,
) -> io::Result<Option<HttpRequest>> {
    let first = line(reader).await?;
    let mut words = first.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Ok(None);
    };
    let path = target.split('?').next().unwrap_or_default().to_owned();
    let method = method.to_owned();
    let mut headers = Vec::new();
    for _ in 0..LINES_MAX {
        let line = line(reader).await?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(Ok(0), |(_, value)| value.parse());
    let length = length.map_err(io::Error::other)?;
    if length > BODY_MAX_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await?;
    Ok(Some(HttpRequest {
        method,
        path,
        headers,
        body,
    }))
}

async fn line<R: AsyncBufRead + Unpin>(reader: &mut R) -> io::Result<String> {
    let mut line = String::new();
    reader.take(LINE_MAX_BYTES).read_line(&mut line).await?;
    Ok(line.trim_end().to_owned())
}

/// Waits until the client closes a connection after sending a request.
pub(crate) async fn wait_until_closed<R: AsyncBufRead + Unpin>(reader: &mut R) {
    match reader.fill_buf().await {
        Ok(bytes) if !bytes.is_empty() => std::future::pending().await,
        Ok(_) | Err(_) => {}
    }
}

/// Renders the status line and headers. `framing` is the header that delimits the body.
pub(crate) fn head(
    status: u16,
    kind: &str,
    headers: &[(String, String)],
    framing: &str,
) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\n{framing}\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    head.into_bytes()
}

pub(crate) fn json(status: u16, headers: &[(String, String)], body: &str) -> [Vec<u8>; 2] {
    let length = format!("content-length: {}", body.len());
    [
        head(status, "application/json", headers, &length),
        body.into(),
    ]
}

pub(crate) fn stream_head(headers: &[(String, String)]) -> Vec<u8> {
    head(
        200,
        "text/event-stream",
        headers,
        "transfer-encoding: chunked",
    )
}

pub(crate) fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}
