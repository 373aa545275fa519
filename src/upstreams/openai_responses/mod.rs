//! OpenAI's Responses API, without its storage.

mod answer;
mod input;
mod output;
mod request;
mod stream;

use async_trait::async_trait;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use tokio::sync::mpsc::Sender;

use super::client::{Endpoint, Failure, HttpClient};
use super::codec::Codec;
use super::names::Names;
use super::settings::UpstreamSettings;
use crate::service::responses::{MediaPlace, Model, ModelAnswer, Piece, Question, UpstreamError};
use stream::ResponseStream;

/// The models of an upstream that speaks OpenAI's Responses API: `POST {url}/responses`, each time with all items.
#[derive(Debug)]
pub struct OpenAiResponses {
    endpoint: Endpoint,
}

impl OpenAiResponses {
    /// The upstream of those settings.
    #[must_use]
    pub fn new(http: &HttpClient, settings: &UpstreamSettings) -> Self {
        let key = settings.key.as_ref();
        let headers: HeaderMap = key
            .map(|key| (AUTHORIZATION, key.bearer()))
            .into_iter()
            .collect();
        Self {
            endpoint: Endpoint::new(http, settings, &["responses"], headers),
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
        let codec = ResponsesCodec { names };
        self.endpoint
            .ask(body.into(), question, &codec, pieces)
            .await
    }

    /// In each form, as parts go there unchanged.
    fn takes(&self, _: MediaPlace, _: &str) -> bool {
        true
    }
}

/// Reads the answers to one request, whose functions may have other names there.
#[derive(Debug)]
struct ResponsesCodec {
    names: Names,
}

impl Codec for ResponsesCodec {
    type Stream<'a> = ResponseStream<'a>;

    fn whole(&self, body: &[u8]) -> Result<ModelAnswer, Failure> {
        answer::read(body, &self.names)
    }

    fn stream(&self, max_bytes: u64) -> ResponseStream<'_> {
        ResponseStream::new(&self.names, max_bytes)
    }
}
