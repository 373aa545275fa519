//! Extractors that need no more than the head of a request, or a body that was read before.

/// Makes an extractor of each type, by its function `of`.
macro_rules! extract {
    ($($extractor:ty),+) => {
        $(
            impl actix_web::FromRequest for $extractor {
                type Error = threadkeep_web::ApiError;
                type Future = std::future::Ready<Result<Self, Self::Error>>;

                fn from_request(
                    request: &actix_web::HttpRequest,
                    _: &mut actix_web::dev::Payload,
                ) -> Self::Future {
                    std::future::ready(Self::of(request))
                }
            }
        )+
    };
}

pub(crate) use extract;
