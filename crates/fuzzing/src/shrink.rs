//! Inputs that fail, made shorter.

use std::time::{Duration, Instant};

/// A shorter input helps a reader, and a corpus stays small; more time than this is not worth it.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// The shortest input that still fails, of those that come from leaving pieces out.
pub(super) fn shrink(mut input: Vec<u8>, fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let start = Instant::now();
    let mut piece = input.len() / 2;
    while piece > 0 {
        let mut at = 0;
        while at < input.len() {
            if start.elapsed() > TIME_LIMIT {
                return input;
            }
            let end = (at + piece).min(input.len());
            let shorter = [&input[..at], &input[end..]].concat();
            if fails(&shorter) {
                input = shorter;
            } else {
                at = end;
            }
        }
        piece /= 2;
    }
    input
}
