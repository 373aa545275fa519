//! OpenAI's Responses API, used without its server-side storage.

mod answer;
mod compact;
mod input;
mod output;
mod request;
mod stream;

use async_trait::async_trait;
use tokio::sync::mpsc::Sender;

use super::client::{Endpoint, HttpClient};
use super::codec::Codec;
use super::count::read_count;
use super::names::Names;
use super::settings::UpstreamSettings;
use stream::ResponseStream;
use threadkeep_responses::{
    CompactedPrompt, MediaCarrier, Model, ModelAnswer, Piece, Question, UpstreamError,
};

/// Models called through OpenAI's Responses API: `POST {url}/responses`. Each request contains the whole conversation.
#[derive(Debug)]
pub struct OpenAiResponses {
    endpoint: Endpoint,
    compactions: Endpoint,
    counts: Endpoint,
}

impl OpenAiResponses {
    #[must_use]
    pub fn new(http: &HttpClient, settings: &UpstreamSettings) -> Self {
        let endpoint = |path: &[&str]| Endpoint::new(http, settings, path, settings.headers());
        Self {
            endpoint: endpoint(&["responses"]),
            compactions: endpoint(&["responses", "compact"]),
            counts: endpoint(&["responses", "input_tokens"]),
        }
    }
}

#[async_trait]
impl Model for OpenAiResponses {
    async fn answer(
        &self,
        question: &Question<'_>,
        pieces: Option<&Sender<Piece>>,
    ) -> Result<ModelAnswer, UpstreamError> {
        let mut names = Names::default();
        let body = request::write(question, pieces.is_some(), &mut names);
        let codec = Codec {
            whole: &|body| answer::read(body, &names),
            stream: &|max_bytes| ResponseStream::new(&names, max_bytes),
        };
        self.endpoint
            .ask(body.into(), question, &codec, pieces)
            .await
    }

    /// Always true, because parts are sent unchanged.
    fn takes(&self, _: MediaCarrier, _: &str) -> bool {
        true
    }

    fn supports_custom_tools(&self) -> bool {
        true
    }

    fn reads_compactions(&self) -> bool {
        true
    }

    async fn compact(
        &self,
        question: &Question<'_>,
    ) -> Result<Option<CompactedPrompt>, UpstreamError> {
        let body = compact::write(question).into();
        let asked = self
            .compactions
            .ask_if_supported(body, question.left, compact::read);
        asked.await
    }

    async fn count_tokens(&self, question: &Question<'_>) -> Result<Option<u64>, UpstreamError> {
        let body = request::write_count_request(question).into();
        let asked = self
            .counts
            .ask_if_supported(body, question.left, read_count);
        asked.await
    }
}
