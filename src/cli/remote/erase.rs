use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

use super::{Remote, print_line, text};
use crate::cli::error::CliError;

/// Delay between calls; each call already waits for the erasure.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Deserialize)]
struct OwnerRow {
    threads: u64,
}

/// The counts that an erasure reports. The counts restart at zero if the server restarts the erasure.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct Erased {
    threads: u64,
    archives: u64,
    complete: bool,
}

impl Erased {
    /// Returns whether these counts belong to a later erasure than `last`.
    fn is_later_erasure(&self, last: &Self) -> bool {
        self.threads < last.threads || self.archives < last.archives
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            threads: self.threads + other.threads,
            archives: self.archives + other.archives,
            complete: other.complete,
        }
    }

    fn to_text(self) -> String {
        format!("{} threads and {} archives", self.threads, self.archives)
    }
}

pub(super) async fn erase(
    remote: &Remote,
    owner: &str,
    is_confirmed: bool,
    is_json: bool,
) -> Result<(), CliError> {
    if !is_confirmed {
        confirm(remote, owner).await?;
    }
    let (mut before, mut last) = (Erased::default(), Erased::default());
    loop {
        let erase = remote.request(Method::DELETE, &["owners", owner], &[]);
        let now: Erased = serde_json::from_str(&text(erase).await?).map_err(CliError::Answer)?;
        if now.is_later_erasure(&last) {
            before = before.plus(&last);
        }
        last = now;
        let total = before.plus(&now);
        if !now.complete {
            show(&format!("erased so far: {}", total.to_text()));
            sleep(PAUSE).await;
            continue;
        }
        return print_line(&match is_json {
            true => json!({
                "owner": owner,
                "threads": total.threads,
                "archives": total.archives,
                "complete": true,
            })
            .to_string(),
            false => format!("erased {} of {owner}", total.to_text()),
        });
    }
}

/// Asks the user for confirmation. If standard input is not a terminal, the option `--yes` is required instead.
async fn confirm(remote: &Remote, owner: &str) -> Result<(), CliError> {
    if !io::stdin().is_terminal() {
        return Err(CliError::NotConfirmed);
    }
    let owned = text(remote.request(Method::GET, &["owners", owner], &[])).await?;
    let owned: OwnerRow = serde_json::from_str(&owned).map_err(CliError::Answer)?;
    let threads = owned.threads;
    eprint!("Permanently erase {owner}: {threads} threads and all archives? [y/N] ");
    let mut answer = String::new();
    io::stdin()
        .read_line(&mut answer)
        .map_err(|_| CliError::NotConfirmed)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(CliError::NotConfirmed),
    }
}

fn show(progress: &str) {
    let mut err = io::stderr().lock();
    let end = match err.is_terminal() {
        true => "\x1b[K\r",
        false => "\n",
    };
    // ignores errors, because the progress line is only informative
    let _ = write!(err, "{progress}{end}").and_then(|()| err.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_counts_belong_to_a_later_erasure() {
        let erased = |threads, archives| Erased {
            threads,
            archives,
            complete: false,
        };
        assert!(!erased(5, 1).is_later_erasure(&erased(4, 1)));
        assert!(erased(0, 1).is_later_erasure(&erased(4, 1)));
        let total = erased(4, 1).plus(&erased(2, 2));
        assert_eq!(total.to_text(), "6 threads and 3 archives");
    }
}
