use std::io;

use super::connection::Connection;

/// Sends `read`, and returns the same request with the `ETag` of the response as `If-None-Match`. Returns `None` if the
/// server does not send an `ETag`, or does not answer the new request with 304.
pub(super) async fn repeated(
    connection: &mut Connection,
    read: &[u8],
) -> io::Result<Option<Vec<u8>>> {
    connection.exchange(read).await?;
    let Some(tag) = connection.header("etag") else {
        return Ok(None);
    };
    // `read` has no body, so the header is inserted before the empty line at the end of the request
    let mut request = read[..read.len() - 2].to_vec();
    request.extend_from_slice(format!("if-none-match: {tag}\r\n\r\n").as_bytes());
    connection.exchange(&request).await?;
    Ok(connection.is_not_modified().then_some(request))
}
