//! Runs a scripted upstream for any client until it is stopped: `scripted-upstream [SCRIPT.json]`.
//!
//! It prints its URL and its key, a line each, and repeats the script. Without a script it answers with the text of the
//! user. `GET /faults` lists the mistakes in all requests.

use std::error::Error;
use std::{env, fs};

use threadkeep_scripted_upstream::{Reply, Upstream, read_script};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let script = match env::args().nth(1) {
        Some(path) => read_script(&fs::read_to_string(path)?)?,
        None => Vec::new(),
    };
    let upstream = Upstream::start_for_any_client().await;
    let mut replies = script.into_iter().cycle();
    upstream.answer_with(move |request| {
        let scripted = replies.next();
        scripted.unwrap_or_else(|| Reply::text(request.user_text()))
    });
    println!("{}\n{}", upstream.url(), upstream.key());
    std::future::pending().await
}
