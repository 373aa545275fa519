use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::{Client, Url};

use crate::error::LoadError;

/// Interval between readiness checks.
const PERIOD: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) struct Hosts {
    urls: Vec<Url>,
    /// URLs without a trailing slash.
    bases: Vec<String>,
    next: AtomicUsize,
}

impl Hosts {
    pub(crate) fn new(urls: Vec<Url>) -> Self {
        let base = |url: &Url| url.as_str().trim_end_matches('/').to_owned();
        Self {
            bases: urls.iter().map(base).collect(),
            urls,
            next: AtomicUsize::new(0),
        }
    }

    /// Returns the base URL of the next host, without a trailing slash.
    pub(crate) fn next(&self) -> &str {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        &self.bases[number % self.bases.len()]
    }

    pub(crate) fn bases(&self) -> &[String] {
        &self.bases
    }

    pub(crate) async fn until_ready(&self, retry_time: Duration) -> Result<(), LoadError> {
        let client = Client::builder().timeout(Duration::from_secs(5)).build();
        let client = client.map_err(LoadError::Client)?;
        let deadline = Instant::now() + retry_time;
        for (url, base) in self.urls.iter().zip(&self.bases) {
            loop {
                let answer = client.get(format!("{base}/readyz")).send().await;
                match answer.and_then(reqwest::Response::error_for_status) {
                    Ok(_) => break,
                    Err(error) if Instant::now() >= deadline => {
                        return Err(LoadError::NotReady(url.clone(), error));
                    }
                    Err(_) => tokio::time::sleep(PERIOD).await,
                }
            }
        }
        Ok(())
    }
}
