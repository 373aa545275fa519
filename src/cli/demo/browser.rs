//! Opens a page in the browser of the person at the terminal.

use std::process::{Command, Stdio};

const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// Opens a URL. The link is printed too, so a machine without a browser needs no error.
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
