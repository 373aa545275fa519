//! Records the commands that a Redis server executes, using `MONITOR`.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use super::redis::RedisServer;

const END: &str = "the end of the trace";

#[derive(Debug)]
pub struct Called {
    pub words: Vec<String>,
    /// True if a script called the command, false if a client did.
    pub is_from_script: bool,
}

#[derive(Debug)]
pub struct Monitor<'a> {
    redis: &'a RedisServer,
    lines: BufReader<TcpStream>,
}

impl<'a> Monitor<'a> {
    pub fn start(redis: &'a RedisServer) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", redis.port())).unwrap();
        stream.write_all(b"MONITOR\r\n").unwrap();
        let mut lines = BufReader::new(stream);
        let mut ok = String::new();
        lines.read_line(&mut ok).unwrap();
        assert_eq!(ok, "+OK\r\n");
        Self { redis, lines }
    }

    pub fn stop(self) -> Vec<Called> {
        let mut connection = self.redis.connection();
        redis::cmd("ECHO").arg(END).exec(&mut connection).unwrap();
        let commands = self.lines.lines().map(|line| parse_line(&line.unwrap()));
        commands
            .take_while(|called| called.words.get(1).is_none_or(|text| text != END))
            .collect()
    }
}

/// Parses a line such as `+1700000000.000000 [0 lua] "HGET" "key" "\x00\""`. Decodes only escaped quotes and
/// backslashes.
fn parse_line(line: &str) -> Called {
    let start = line.find("] \"").map_or(line.len(), |index| index + 2);
    let is_from_script = line[..start].ends_with(" lua] ");
    let mut arguments = Vec::new();
    let mut chars = line[start..].chars();
    while chars.next() == Some('"') {
        let mut argument = String::new();
        while let Some(char) = chars.next() {
            let rest = chars.as_str();
            // Valkey 8.1 does not escape quotes
            if char == '"' && (rest.is_empty() || rest.starts_with(" \"")) {
                break;
            }
            match (char, rest.chars().next()) {
                ('\\', Some(escaped @ ('"' | '\\'))) => {
                    argument.push(escaped);
                    chars.next();
                }
                _ => argument.push(char),
            }
        }
        arguments.push(argument);
        chars.next();
    }
    Called {
        words: arguments,
        is_from_script,
    }
}
