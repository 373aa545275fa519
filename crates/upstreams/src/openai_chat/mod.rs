//! OpenAI's Chat Completions API, which OpenAI, Azure and many compatible servers provide.

mod answer;
mod calls;
mod dialect;
mod logprobs;
mod messages;
mod reasoning;
mod request;
mod stream;

use async_trait::async_trait;
use tokio::sync::mpsc::Sender;

use super::client::{Endpoint, HttpClient};
use super::codec::Codec;
use super::settings::UpstreamSettings;
use dialect::Dialect;
use stream::ChatStream;
use threadkeep_responses::{MediaCarrier, Model, ModelAnswer, Piece, Question, UpstreamError};

/// Models called through OpenAI's Chat Completions API: `POST {url}/chat/completions`.
#[derive(Debug)]
pub struct OpenAiChat {
    endpoint: Endpoint,
    dialect: Dialect,
}

impl OpenAiChat {
    #[must_use]
    pub fn new(http: &HttpClient, settings: &UpstreamSettings) -> Self {
        Self {
            endpoint: Endpoint::new(http, settings, &["chat", "completions"], settings.headers()),
            dialect: Dialect::of_host(settings.url.host()),
        }
    }
}

#[async_trait]
impl Model for OpenAiChat {
    async fn answer(
        &self,
        question: &Question<'_>,
        pieces: Option<&Sender<Piece>>,
    ) -> Result<ModelAnswer, UpstreamError> {
        let body = request::write(question, self.dialect, pieces.is_some());
        let codec = Codec {
            whole: &answer::read,
            stream: &ChatStream::new,
        };
        self.endpoint
            .ask(body.into(), question, &codec, pieces)
            .await
    }

    fn supports_custom_tools(&self) -> bool {
        true
    }

    /// In this API, only user messages can contain images and files.
    fn takes(&self, carrier: MediaCarrier, part: &str) -> bool {
        carrier == MediaCarrier::User && messages::accepts(part)
    }
}
