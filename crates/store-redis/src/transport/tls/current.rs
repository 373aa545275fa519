use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;

use super::pair::{Pair, Texts};
use crate::client_certificate::{ClientCertificate, ClientCertificateError};

/// Minimum time between reads of the files.
const READ_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// A client certificate that can be renewed without a restart. All endpoints of a Redis deployment share it.
pub(crate) struct CurrentCertificate {
    files: ClientCertificate,
    pair: Mutex<Arc<Pair>>,
    /// Locked while the files are being read. Meanwhile, other connections use the previous certificate and key.
    last: tokio::sync::Mutex<LastRead>,
}

struct LastRead {
    at: Instant,
    /// The logged error of the last read.
    failure: Option<String>,
}

impl CurrentCertificate {
    pub(crate) fn read(files: &ClientCertificate) -> Result<Self, ClientCertificateError> {
        let pair = Pair::of(Texts::read(files)?)?;
        Ok(Self {
            files: files.clone(),
            pair: Mutex::new(Arc::new(pair)),
            last: tokio::sync::Mutex::new(LastRead {
                at: Instant::now(),
                failure: None,
            }),
        })
    }

    /// Returns the certificate and key from the files, or the previous certificate and key if the files cannot be used.
    pub(crate) async fn get(&self) -> Arc<Pair> {
        if let Ok(mut last) = self.last.try_lock()
            && last.at.elapsed() >= READ_INTERVAL_MIN
        {
            last.at = Instant::now();
            self.reread(&mut last).await;
        }
        Arc::clone(&self.pair.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn reread(&self, last: &mut LastRead) {
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
            // happens only when the runtime ends
            Err(_) => {}
        }
    }
}

fn text(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<_> = sources.map(ToString::to_string).collect();
    texts.join(": ")
}

/// Omits the key.
impl fmt::Debug for CurrentCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentCertificate").finish_non_exhaustive()
    }
}
