//! OpenAI's image API, which many compatible servers provide.

use std::time::Duration;

use super::client::{Endpoint, HttpClient};
use super::json::{Object, parse, text_member};
use super::settings::UpstreamSettings;
use threadkeep_domain::member_elements;
use threadkeep_responses::UpstreamError;

/// A model behind OpenAI's image API: `POST {url}/images/generations`.
#[derive(Debug)]
pub struct OpenAiImages {
    endpoint: Endpoint,
    model: Box<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamImage {
    Base64(String),
    Url(String),
}

impl OpenAiImages {
    #[must_use]
    pub fn new(http: &HttpClient, settings: &UpstreamSettings, model: &str) -> Self {
        Self {
            endpoint: Endpoint::new(
                http,
                settings,
                &["images", "generations"],
                settings.headers(),
            ),
            model: model.into(),
        }
    }

    pub fn model(&self) -> &str {
        &self.model
    }

    /// Generates one image within `left`.
    pub async fn generate(
        &self,
        prompt: &str,
        left: Duration,
    ) -> Result<UpstreamImage, UpstreamError> {
        let body = Object::new()
            .text("model", &self.model)
            .text("prompt", prompt)
            .json("n", "1")
            .close();
        self.endpoint.ask_whole(body.into(), left, read).await
    }
}

fn read(body: &[u8]) -> Option<UpstreamImage> {
    let json = parse(body)?;
    let image = member_elements(json.as_str(), "data").next()?;
    let member = |name| text_member(image, name);
    let base64 = member("b64_json").map(|text| UpstreamImage::Base64(text.into_owned()));
    base64.or_else(|| Some(UpstreamImage::Url(member("url")?.into_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_an_image_or_its_url() {
        for (body, image) in [
            (
                r#"{"created":1,"data":[{"b64_json":"AAAA","url":null}]}"#,
                Some(UpstreamImage::Base64("AAAA".into())),
            ),
            (
                r#"{"data":[{"url":"https://a.example/1.png"}]}"#,
                Some(UpstreamImage::Url("https://a.example/1.png".into())),
            ),
            (r#"{"data":[{"b64_json":""}]}"#, None),
            (r#"{"data":[]}"#, None),
            (r#"{"data":{}}"#, None),
            ("[]", None),
            ("<html>", None),
        ] {
            assert!(read(body.as_bytes()) == image, "{body}");
        }
    }
}
