//! A client certificate that may be renewed while the server runs.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;

use super::pair::{Pair, Texts};
use crate::client_certificate::{ClientCertificate, ClientCertificateError};

/// The least time between two looks at the files, however many connections are made.
const BETWEEN: Duration = Duration::from_secs(1);

/// The certificate in two files, and its key, as new connections show it. All users of a deployment share it.
pub(crate) struct CurrentCertificate {
    files: ClientCertificate,
    pair: Mutex<Arc<Pair>>,
    /// Held while the files are read. The other connections made meanwhile show the pair from before.
    last: tokio::sync::Mutex<Look>,
}

/// The last look at the files.
struct Look {
    at: Instant,
    /// Why their content could not be used, as it was logged.
    failure: Option<String>,
}

impl CurrentCertificate {
    /// Reads and checks the files.
    pub(crate) fn read(files: &ClientCertificate) -> Result<Self, ClientCertificateError> {
        let pair = Pair::of(Texts::read(files)?)?;
        Ok(Self {
            files: files.clone(),
            pair: Mutex::new(Arc::new(pair)),
            last: tokio::sync::Mutex::new(Look {
                at: Instant::now(),
                failure: None,
            }),
        })
    }

    /// The pair for a new connection: the one in the files now, or the last usable one.
    pub(crate) async fn get(&self) -> Arc<Pair> {
        if let Ok(mut last) = self.last.try_lock()
            && last.at.elapsed() >= BETWEEN
        {
            last.at = Instant::now();
            self.look(&mut last).await;
        }
        Arc::clone(&self.pair.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn look(&self, last: &mut Look) {
        let files = self.files.clone();
        let before = Arc::clone(&self.pair.lock().unwrap_or_else(PoisonError::into_inner));
        let renewed = spawn_blocking(move || {
            let texts = Texts::read(&files)?;
            match before.is_of(&texts) {
                true => Ok(None),
                false => Pair::of(texts).map(Some),
            }
        });
        match renewed.await {
            Ok(Ok(None)) => last.failure = None,
            Ok(Ok(Some(pair))) => {
                *self.pair.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(pair);
                last.failure = None;
                tracing::info!("new connections to Redis show the renewed client certificate");
            }
            Ok(Err(error)) => {
                let failure = text(&error);
                if last.failure.as_ref() != Some(&failure) {
                    tracing::warn!(
                        error = failure,
                        "the client certificate for Redis cannot be read again, the last one stays in use"
                    );
                    last.failure = Some(failure);
                }
            }
            // only at the end of the runtime
            Err(_) => {}
        }
    }
}

/// The error and its sources.
fn text(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<_> = sources.map(ToString::to_string).collect();
    texts.join(": ")
}

/// It contains a key.
impl fmt::Debug for CurrentCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentCertificate").finish_non_exhaustive()
    }
}
