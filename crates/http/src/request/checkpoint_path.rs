use actix_web::HttpRequest;

use super::decode::path_part;
use super::extract::extract;
use crate::answer::ApiResult;
use threadkeep_domain::Refusal;
use threadkeep_service::ServiceError;

/// Index of the last path part in `/v1/threads/{thread}/checkpoints/{n}`. Part 0 is empty.
const NUMBER_INDEX: usize = 5;

/// The checkpoint number in the path. If the path part is not a number, the checkpoint does not exist.
#[derive(Debug)]
pub(crate) struct CheckpointPath(pub(crate) u32);

fn read(text: &str) -> Option<u32> {
    let is_plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

impl CheckpointPath {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let number = path_part(request, NUMBER_INDEX).and_then(|text| read(&text));
        let unknown = || ServiceError::Refused(Refusal::CheckpointNotFound).into();
        number.map(Self).ok_or_else(unknown)
    }
}

extract!(CheckpointPath);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_form_of_a_number_is_parsed() {
        assert_eq!(
            ["1", "32", "4294967295"].map(read),
            [Some(1), Some(32), Some(u32::MAX)]
        );
        for bad in ["", "0", "01", "+1", "-1", "1.0", "x", "4294967296"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
