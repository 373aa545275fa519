use std::io;

use serde_json::Value;

use super::connection::Connection;
use super::content::Content;
use super::documents;
use super::operation::Operation;
use super::threadkeep;
use super::webdis::{self, Scripts};

#[derive(Debug)]
pub(super) enum Api {
    Threadkeep,
    /// The routes of all peers except the product and Webdis.
    Documents,
    Webdis(Scripts),
}

impl Api {
    /// Creates a state, and returns its name. If the peer lets clients choose names, the state is named `name`.
    pub(super) async fn create(
        &self,
        connection: &mut Connection,
        name: &str,
        content: &Content,
    ) -> io::Result<String> {
        match self {
            Self::Threadkeep => threadkeep::create(connection, content).await,
            Self::Documents => documents::create(connection, content).await,
            Self::Webdis(scripts) => webdis::create(connection, scripts, name, content).await,
        }
    }

    pub(super) fn request(&self, operation: Operation, state: &str, n: usize) -> Vec<u8> {
        match self {
            Self::Threadkeep => threadkeep::request(operation, state, n),
            Self::Documents => documents::request(operation, state, n),
            Self::Webdis(scripts) => webdis::request(scripts, operation, state, n),
        }
    }

    pub(super) fn read(&self, operation: Operation, state: &str) -> Vec<u8> {
        self.request(operation.read(), state, 0)
    }

    pub(super) fn state(&self, answer: &[u8]) -> io::Result<Value> {
        match self {
            Self::Threadkeep | Self::Documents => Ok(serde_json::from_slice(answer)?),
            Self::Webdis(_) => webdis::state(answer),
        }
    }
}
