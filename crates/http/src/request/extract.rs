use actix_web::HttpRequest;

use crate::answer::ApiResult;

pub(crate) trait Extract: Sized {
    fn of(request: &HttpRequest) -> ApiResult<Self>;
}

impl Extract for () {
    fn of(_: &HttpRequest) -> ApiResult<Self> {
        Ok(())
    }
}

/// Implements `Extract` and `FromRequest` for types that have a function `of`. For a generic type, write its generic
/// parameters in brackets before the type.
macro_rules! extract {
    ([$($parameters:tt)*] $extractor:ty) => {
        impl<$($parameters)*> crate::request::extract::Extract for $extractor {
            fn of(request: &actix_web::HttpRequest) -> crate::answer::ApiResult<Self> {
                Self::of(request)
            }
        }

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
