use actix_web::Error;
use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;

use super::context::change_context;
use threadkeep_web::ApiError;

/// Size limit for the URL. Fits 20 percent-encoded keys of maximum length in the query.
const URL_BYTES_MAX: usize = 16_384;
/// Size limit for the URL and the headers together. Half of that is enough for the largest cookies that browsers send
/// and load balancers forward.
const HEAD_BYTES_MAX: usize = 32_768;
/// Maximum number of headers. Browsers send about 20 headers, and proxies add up to 20 more. Requests with more than 96
/// headers or a head of more than 64 KiB are rejected before this check, with the same status but without a body.
const HEADERS_MAX: usize = 64;

/// Size of a header's separators: `: ` after the name, and the line break.
const SEPARATOR_BYTES: usize = 4;

/// Responds to a request if its head was rejected. Runs inside the CORS middleware, because a web page could not read a
/// response without CORS headers.
pub async fn refuse<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let refusal = change_context(&request, |context| context.refusal.take());
    Ok(match refusal.flatten() {
        Some(error) => request.error_response(error).map_into_right_body(),
        None => next.call(request).await?.map_into_left_body(),
    })
}

pub(crate) fn refusal(request: &ServiceRequest) -> Option<ApiError> {
    let uri = request.uri();
    let url_bytes = uri.path().len() + uri.query().map_or(0, |query| 1 + query.len());
    if url_bytes > URL_BYTES_MAX {
        let limit_bytes = URL_BYTES_MAX;
        return Some(ApiError::UrlTooLong { limit_bytes });
    }
    let (mut count, mut bytes) = (0, url_bytes);
    for (name, value) in request.headers() {
        count += 1;
        bytes += name.as_str().len() + value.len() + SEPARATOR_BYTES;
    }
    (count > HEADERS_MAX || bytes > HEAD_BYTES_MAX).then_some(ApiError::HeadersTooLarge {
        limit: HEADERS_MAX,
        limit_bytes: HEAD_BYTES_MAX,
    })
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};
    use actix_web::test::TestRequest;

    use super::*;

    fn with_headers(count: usize, value_bytes: usize) -> Option<ApiError> {
        let mut request = TestRequest::with_uri("/v1/threads/current");
        for number in 0..count {
            let name = HeaderName::try_from(format!("x-{number:03}")).unwrap();
            let value = HeaderValue::try_from("v".repeat(value_bytes)).unwrap();
            request = request.append_header((name, value));
        }
        refusal(&request.to_srv_request())
    }

    #[test]
    fn a_head_of_exactly_the_maximum_size_is_accepted() {
        let rest = HEAD_BYTES_MAX - "/v1/threads/current".len() - "x-000".len() - SEPARATOR_BYTES;

        assert!(with_headers(1, rest).is_none());
        assert!(with_headers(1, rest + 1).is_some());
        assert!(with_headers(HEADERS_MAX, 1).is_none());
        assert!(with_headers(HEADERS_MAX + 1, 1).is_some());
    }

    #[test]
    fn the_url_limit_includes_the_query() {
        let url_of = |bytes: usize| {
            let url = format!("/v1?{}", "q".repeat(bytes - "/v1?".len()));
            refusal(&TestRequest::with_uri(&url).to_srv_request())
        };

        assert!(url_of(URL_BYTES_MAX).is_none());
        assert!(matches!(
            url_of(URL_BYTES_MAX + 1),
            Some(ApiError::UrlTooLong { .. })
        ));
    }
}
