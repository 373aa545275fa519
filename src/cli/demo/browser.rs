//! Opens a page in the user's browser.

use std::process::{Command, Stdio};

const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// Opens a URL. A failure is only logged, because the link is also printed.
pub(super) fn open(url: &str) {
    let opened = Command::new(OPENER)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = opened {
        tracing::warn!(%error, "cannot open a browser");
    }
}
