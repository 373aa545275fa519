//! A parser for server-sent events ([the HTML standard, section
//! 9.2.6](https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation)).

/// Incremental parser for this server's event streams. Each line ends with a line feed, and each event has one line of
/// data.
#[derive(Debug, Default)]
pub(super) struct EventLines {
    buffer: Vec<u8>,
    event: String,
    data: Option<String>,
    /// Cursor of the event that is being received. It replaces `id` once this event is complete.
    next_id: Option<String>,
    /// Cursor of the last complete event.
    pub(super) id: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct StreamEvent {
    pub(super) event: String,
    pub(super) data: String,
}

impl EventLines {
    /// Prepares for a new stream that starts after `id`. Drops a partial event, which the server will send again.
    pub(super) fn restart(&mut self) {
        *self = Self {
            id: self.id.take(),
            ..Self::default()
        };
    }

    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<StreamEvent> {
        self.buffer.extend_from_slice(bytes);
        let buffer = std::mem::take(&mut self.buffer);
        let mut lines = buffer.split(|byte| *byte == b'\n');
        self.buffer = lines.next_back().unwrap_or_default().to_vec();
        let lines = lines.map(String::from_utf8_lossy);
        lines.filter_map(|line| self.line(&line)).collect()
    }

    fn line(&mut self, line: &str) -> Option<StreamEvent> {
        if line.is_empty() {
            self.id = self.next_id.take().or(self.id.take());
            let event = std::mem::take(&mut self.event);
            let data = self.data.take()?;
            return Some(StreamEvent { event, data });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event),
            "data" => self.data = Some(value.to_owned()),
            "id" => self.next_id = Some(value.to_owned()),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_parsed_regardless_of_chunk_boundaries() {
        let stream =
            ":\nretry: 2000\nid: a\n\nevent: x\nid: b\ndata: {\"k\":\"é:\"}\n\n:\nid: c\n\n";
        let expected = StreamEvent {
            event: "x".into(),
            data: "{\"k\":\"é:\"}".into(),
        };

        for size in 1..=stream.len() {
            let mut lines = EventLines::default();
            let chunks = stream.as_bytes().chunks(size);
            let events: Vec<_> = chunks.flat_map(|chunk| lines.take(chunk)).collect();

            assert_eq!(
                events,
                [&expected].map(|event| StreamEvent {
                    event: event.event.clone(),
                    data: event.data.clone(),
                })
            );
            assert_eq!(lines.id.as_deref(), Some("c"));
        }
    }

    #[test]
    fn the_cursor_of_an_incomplete_event_is_dropped() {
        let mut lines = EventLines::default();
        lines.take(b"event: x\nid: a\ndata: 1\n\nevent: x\nid: b\ndata: 2");

        lines.restart();

        assert_eq!(lines.id.as_deref(), Some("a"));
        lines.take(b"data: 3\n\n");
        assert_eq!(lines.id.as_deref(), Some("a"));
    }
}
