use std::io;

use super::connection::Connection;

/// Returns a read with the `ETag` of its response as `If-None-Match`, or `None` if the server sends no tag or does not
/// answer 304.
pub(super) async fn repeated(
    connection: &mut Connection,
    read: &[u8],
) -> io::Result<Option<Vec<u8>>> {
    connection.exchange(read).await?;
    let Some(tag) = connection.header("etag") else {
        return Ok(None);
    };
    // a read has no body, so it ends with an empty line
    let mut request = read[..read.len() - 2].to_vec();
    request.extend_from_slice(format!("if-none-match: {tag}\r\n\r\n").as_bytes());
    connection.exchange(&request).await?;
    Ok(connection.is_not_modified().then_some(request))
}
