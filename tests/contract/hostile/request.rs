/// An HTTP request. The path and the query are percent-encoded, as in the request line.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: Vec<u8>,
    /// Names and values of the parameters. A parameter without `=` has no value.
    pub(super) query: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// All headers except `host` and `content-length`.
    pub(super) headers: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) body: Option<Vec<u8>>,
}

impl Request {
    pub(super) fn new(method: &str, path: impl Into<Vec<u8>>) -> Self {
        Self {
            method: method.into(),
            path: path.into(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
        }
    }

    pub(super) fn header(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(super) fn parameter(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.query.push((name.into(), Some(value.into())));
        self
    }

    pub(super) fn json(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self.header("content-type", "application/json")
    }

    pub(super) fn without_credentials(mut self) -> Self {
        const CREDENTIALS: [&[u8]; 4] = [
            b"authorization",
            b"cookie",
            b"x-thread-id",
            b"x-modelrelay-api-key",
        ];
        self.headers
            .retain(|(name, _)| !CREDENTIALS.contains(&name.as_slice()));
        self
    }

    pub(super) fn target(&self) -> Vec<u8> {
        let mut target = self.path.clone();
        for (index, (name, value)) in self.query.iter().enumerate() {
            target.push(if index == 0 { b'?' } else { b'&' });
            target.extend(name);
            if let Some(value) = value {
                target.push(b'=');
                target.extend(value);
            }
        }
        target
    }

    pub(super) fn lines(&self) -> Vec<Vec<u8>> {
        let mut lines = vec![b"host: localhost\r\n".to_vec()];
        for (name, value) in &self.headers {
            lines.push([name, b": ".as_slice(), value, b"\r\n"].concat());
        }
        if let Some(body) = &self.body {
            lines.push(format!("content-length: {}\r\n", body.len()).into_bytes());
        }
        lines
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.bytes_of(b"HTTP/1.1\r\n", &self.lines().concat(), self.payload())
    }

    pub(super) fn bytes_of(&self, version: &[u8], lines: &[u8], body: &[u8]) -> Vec<u8> {
        let method = self.method.as_bytes();
        [
            method,
            b" ",
            &self.target(),
            b" ",
            version,
            lines,
            b"\r\n",
            body,
        ]
        .concat()
    }

    pub(super) fn payload(&self) -> &[u8] {
        self.body.as_deref().unwrap_or_default()
    }
}
