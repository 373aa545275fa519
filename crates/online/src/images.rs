use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::time::timeout;

use super::fetch::{FetchError, FetchOptions, PrivateHost, Requests, parse_url};
use threadkeep_responses::{GeneratedImage, StatelessError, UpstreamError};
use threadkeep_upstreams::{HttpClient, OpenAiImages, UpstreamImage, UpstreamSettings};

/// Maximum size of an image in bytes. In base64, an image of this size takes 8 MiB, the maximum total size of the
/// images in a response.
const IMAGE_BYTES_MAX: usize = 6 * 1_048_576;
/// Maximum size of an upstream's answer in bytes. The answer contains the image in base64.
const ANSWER_BYTES_MAX: u64 = 9 * 1_048_576;
/// Time limit for fetching an image from a URL, including all redirects.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub struct ImageSettings {
    pub http: HttpClient,
    /// The setting `max_answer_bytes` has no effect here.
    pub upstream: UpstreamSettings,
    pub model: String,
}

#[derive(Debug)]
pub(super) struct ImageGenerator {
    api: OpenAiImages,
    requests: Requests,
}

impl ImageGenerator {
    pub(super) fn new(settings: ImageSettings) -> Self {
        let upstream = UpstreamSettings {
            max_answer_bytes: ANSWER_BYTES_MAX,
            ..settings.upstream
        };
        let (host, port) = upstream.url.authority();
        // the upstream may serve its images from its own private address
        let upstream_host = PrivateHost::new(host, port);
        Self {
            requests: Requests::new(vec![upstream_host]),
            api: OpenAiImages::new(&settings.http, &upstream, &settings.model),
        }
    }

    /// Generates an image. Fails if the generation takes longer than `time_limit`.
    pub(super) async fn generate(
        &self,
        prompt: &str,
        time_limit: Duration,
    ) -> Result<GeneratedImage, StatelessError> {
        let failed = |text: &'static str| StatelessError::Failed(text.into());
        let image = self.api.generate(prompt, time_limit).await;
        let bytes = match image.map_err(|error| failed(reason(&error)))? {
            UpstreamImage::Base64(text) => STANDARD
                .decode(text)
                .map_err(|_| failed("the upstream returned no image"))?,
            UpstreamImage::Url(url) => self.fetch(&url).await.map_err(|_| {
                failed("the image cannot be fetched from where the upstream put it")
            })?,
        };
        if bytes.len() > IMAGE_BYTES_MAX {
            return Err(failed("the image has more than 6 MiB"));
        }
        Ok(GeneratedImage {
            model: self.api.model().to_owned(),
            mime_type: mime_type(&bytes).ok_or(failed("the upstream returned no image"))?,
            bytes: bytes.len() as u64,
            base64: STANDARD.encode(bytes),
        })
    }

    /// Fetches an image from the upstream or from a public address.
    async fn fetch(&self, url: &str) -> Result<Vec<u8>, FetchError> {
        let url = parse_url(url).ok_or(FetchError::Location)?;
        let options = FetchOptions {
            accept: "image/*",
            // the bytes determine the type
            is_accepted: |_| true,
            max_bytes: IMAGE_BYTES_MAX,
        };
        let fetched = timeout(FETCH_TIMEOUT, self.requests.get(url, &options)).await;
        Ok(fetched
            .map_err(|_| FetchError::Timeout(FETCH_TIMEOUT))??
            .bytes)
    }
}

/// Returns a message that explains to the model why there is no image. Omits the upstream's message, because only the
/// client that sent the request may see it.
fn reason(error: &UpstreamError) -> &'static str {
    match error {
        UpstreamError::Refused(_) => "the upstream refused the prompt",
        UpstreamError::RateLimited { .. } => "the upstream has too many requests",
        UpstreamError::Rejected => "the upstream rejected the request of this server",
        UpstreamError::Failed => "the upstream failed",
        UpstreamError::Malformed => "the answer of the upstream is unreadable or too long",
        UpstreamError::Timeout => "the upstream did not answer in time",
    }
}

fn mime_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::scripted::{Reply, Scripted, reply};

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and so on";
    const MINUTE: Duration = Duration::from_secs(60);

    fn painter(url: &str) -> ImageGenerator {
        ImageGenerator::new(ImageSettings {
            http: HttpClient::new(),
            upstream: UpstreamSettings {
                name: "main".into(),
                url: url.parse().unwrap(),
                key: Some("sk-1".parse().unwrap()),
                timeout: MINUTE,
                retries: 0,
                max_answer_bytes: 10,
            },
            model: "painter-1".into(),
        })
    }

    fn answer(image: &str) -> Reply {
        reply(200, "", format!(r#"{{"created":1,"data":[{image}]}}"#))
    }

    fn base64(bytes: &[u8]) -> Reply {
        answer(&format!(r#"{{"b64_json":"{}"}}"#, STANDARD.encode(bytes)))
    }

    #[tokio::test]
    async fn an_image_comes_with_its_type_and_size() {
        let server = Scripted::start(|_| base64(PNG)).await;

        let painter = painter(&server.url("/v1"));
        let image = painter.generate("a \"cat\"", MINUTE).await.unwrap();

        assert_eq!(image.model, "painter-1");
        assert_eq!(image.mime_type, "image/png");
        assert_eq!(image.bytes, PNG.len() as u64);
        assert_eq!(STANDARD.decode(image.base64).unwrap(), PNG);
        let request = server.requests().pop().unwrap();
        assert!(request.starts_with("POST /v1/images/generations HTTP/1.1\r\n"));
        assert!(request.contains("\r\nauthorization: Bearer sk-1\r\n"));
        let body = r#"{"model":"painter-1","prompt":"a \"cat\"","n":1}"#;
        assert!(request.ends_with(&format!("\r\n\r\n{body}")), "{request}");
    }

    #[tokio::test]
    async fn an_image_url_may_name_the_upstream_but_no_other_private_host() {
        let inside = Scripted::start(|_| reply(200, "", PNG)).await;
        let internal_url = inside.url("/1.png");
        let server = Scripted::start(move |path| match path {
            "/inside/images/generations" => answer(&format!(r#"{{"url":"{internal_url}"}}"#)),
            "/scheme/images/generations" => answer(r#"{"url":"file:///etc/passwd"}"#),
            "/1.png" => reply(200, "", PNG),
            "/redirect" => reply(302, &format!("location: {internal_url}\r\n"), ""),
            _ => unreachable!("{path}"),
        })
        .await;
        let own = server.url("/1.png");

        for path in ["/inside", "/scheme"] {
            let error = painter(&server.url(path)).generate("a", MINUTE).await;
            let text = "the image cannot be fetched from where the upstream put it";
            assert_eq!(error, Err(StatelessError::Failed(text.into())), "{path}");
        }
        let painter = painter(&server.url("/v1"));
        assert_eq!(painter.fetch(&own).await.unwrap(), PNG);
        let redirect = painter.fetch(&server.url("/redirect")).await;
        assert_eq!(redirect, Err(FetchError::NotPublic));
        assert_eq!(inside.requests(), [""; 0]);
    }

    #[tokio::test]
    async fn invalid_and_oversized_images_fail() {
        let server = Scripted::start(|path| match path {
            "/fits/images/generations" => {
                base64(&[PNG, &vec![0; IMAGE_BYTES_MAX - PNG.len()]].concat())
            }
            "/large/images/generations" => base64(&[PNG, &vec![0; IMAGE_BYTES_MAX]].concat()),
            "/svg/images/generations" => base64(b"<svg/>"),
            "/odd/images/generations" => answer(r#"{"b64_json":"%%"}"#),
            "/none/images/generations" => answer("{}"),
            "/400/images/generations" => reply(400, "", r#"{"error":{"message":"secret"}}"#),
            "/500/images/generations" => reply(500, "", "secret"),
            _ => unreachable!("{path}"),
        })
        .await;

        for (path, text) in [
            ("/large", "the image has more than 6 MiB"),
            ("/svg", "the upstream returned no image"),
            ("/odd", "the upstream returned no image"),
            (
                "/none",
                "the answer of the upstream is unreadable or too long",
            ),
            ("/400", "the upstream refused the prompt"),
            ("/500", "the upstream failed"),
        ] {
            let error = painter(&server.url(path)).generate("a", MINUTE).await;
            assert_eq!(error, Err(StatelessError::Failed(text.into())), "{path}");
        }
        let image = painter(&server.url("/fits")).generate("a", MINUTE).await;
        assert_eq!(image.unwrap().base64.len(), 8 * 1_048_576);
    }

    #[test]
    fn the_type_of_an_image_is_detected_from_its_first_bytes() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\n..."[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"RIFF\x01\x02\x03\x04WEBPVP8 ", Some("image/webp")),
            (b"GIF89a", Some("image/gif")),
            (b"<svg xmlns='http://www.w3.org/2000/svg'/>", None),
            (b"", None),
        ] {
            assert_eq!(mime_type(bytes), expected, "{bytes:?}");
        }
    }
}
