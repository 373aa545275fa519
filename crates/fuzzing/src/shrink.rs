use std::time::{Duration, Instant};

/// Time limit for shrinking. Shrinking is optional: it makes the input easier to read and keeps the corpus small.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Removes pieces of an input as long as the remaining input still fails. Returns the shortest failing input.
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
