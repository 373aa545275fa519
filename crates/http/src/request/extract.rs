//! Extractors that need no more than the head of a request, or a body that was read before.

/// Makes an extractor of each type, by its function `of`. The parameters of a generic type are in brackets before it.
macro_rules! extract {
    ([$($parameters:tt)*] $extractor:ty) => {
        impl<$($parameters)*> actix_web::FromRequest for $extractor {
            type Error = threadkeep_web::ApiError;
            type Future = std::future::Ready<Result<Self, Self::Error>>;

            fn from_request(
                request: &actix_web::HttpRequest,
                _: &mut actix_web::dev::Payload,
            ) -> Self::Future {
                std::future::ready(Self::of(request))
            }
        }
    };
    ($($extractor:ty),+) => {
        $(extract!([] $extractor);)+
    };
}

pub(crate) use extract;
