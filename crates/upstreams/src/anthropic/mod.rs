mod answer;
mod blocks;
mod media;
mod messages;
mod request;
mod stream;
mod thinking;

use async_trait::async_trait;
use reqwest::header::{HeaderName, HeaderValue};
use tokio::sync::mpsc::Sender;

use super::client::{Endpoint, HttpClient};
use super::codec::Codec;
use super::count::read_count;
use super::names::Names;
use super::settings::UpstreamSettings;
use stream::MessageStream;
use threadkeep_responses::{
    MediaCarrier, Model, ModelAnswer, Parameters, Piece, Question, UpstreamError,
};

/// API version that Anthropic's Python client 2.14.0 sends.
const VERSION: (HeaderName, HeaderValue) = (
    HeaderName::from_static("anthropic-version"),
    HeaderValue::from_static("2026-10-21"),
);

/// Models called through Anthropic's Messages API: `POST {url}/v1/messages`.
#[derive(Debug)]
pub struct AnthropicMessages {
    endpoint: Endpoint,
    counts: Endpoint,
    max_output_tokens: u64,
}

impl AnthropicMessages {
    #[must_use]
    pub fn new(http: &HttpClient, settings: &UpstreamSettings, max_output_tokens: u64) -> Self {
        let mut headers = settings.headers();
        headers.extend([VERSION]);
        let endpoint = |path: &[&str]| Endpoint::new(http, settings, path, headers.clone());
        Self {
            endpoint: endpoint(&["v1", "messages"]),
            counts: endpoint(&["v1", "messages", "count_tokens"]),
            max_output_tokens,
        }
    }
}

#[async_trait]
impl Model for AnthropicMessages {
    async fn answer(
        &self,
        question: &Question<'_>,
        pieces: Option<&Sender<Piece>>,
    ) -> Result<ModelAnswer, UpstreamError> {
        let mut names = Names::default();
        let body = request::write(
            question,
            self.max_output_tokens,
            pieces.is_some(),
            &mut names,
        );
        let codec = Codec {
            whole: &|body| answer::read(body, &names),
            stream: &|max_bytes| MessageStream::new(&names, max_bytes),
        };
        self.endpoint
            .ask(body.into(), question, &codec, pieces)
            .await
    }

    fn takes(&self, carrier: MediaCarrier, part: &str) -> bool {
        matches!(carrier, MediaCarrier::User | MediaCarrier::Result) && messages::accepts(part)
    }

    fn lacks(&self, parameters: &Parameters) -> Option<&'static str> {
        request::lacks(parameters)
    }

    async fn count_tokens(&self, question: &Question<'_>) -> Result<Option<u64>, UpstreamError> {
        let body = request::write_count_request(question).into();
        let asked = self
            .counts
            .ask_if_supported(body, question.left, read_count);
        asked.await
    }
}
