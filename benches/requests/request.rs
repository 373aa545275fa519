/// Returns a JSON string of 100 bytes, including quotes.
pub(super) fn value(n: usize) -> String {
    format!(r#""{n:0>98}""#)
}

/// Returns a JSON object of 200 bytes.
pub(super) fn message(n: usize) -> String {
    let message = format!(r#"{{"role":"user","content":"{n:0>172}"}}"#);
    assert_eq!(message.len(), 200);
    message
}

pub(super) fn request(line: &str, thread: Option<&str>, body: &str) -> Vec<u8> {
    request_with(line, thread.map(|id| ("x-thread-id", id)), body)
}

pub(super) fn request_with(line: &str, header: Option<(&str, &str)>, body: &str) -> Vec<u8> {
    let mut request = format!("{line} HTTP/1.1\r\nhost: localhost\r\n");
    if let Some((name, value)) = header {
        request += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() {
        let length = body.len();
        request += &format!("content-type: application/json\r\ncontent-length: {length}\r\n");
    }
    request += "\r\n";
    request += body;
    request.into_bytes()
}
