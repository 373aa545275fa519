use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;

const FORMAT: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");

/// Formats Unix milliseconds as a UTC time ([RFC 3339](https://www.rfc-editor.org/rfc/rfc3339)). Returns `None` for a
/// time after the year 9999.
#[must_use]
pub fn rfc3339(ms: u64) -> Option<String> {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms) * 1_000_000).ok()?;
    time.format(FORMAT).ok()
}

/// Parses an RFC 3339 time with any UTC offset into Unix milliseconds. Times before the epoch become 0.
#[must_use]
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    let ms = time.unix_timestamp_nanos() / 1_000_000;
    Some(u64::try_from(ms).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_in_utc_with_milliseconds() {
        assert_eq!(rfc3339(0).unwrap(), "1970-01-01T00:00:00.000Z");
        assert_eq!(
            rfc3339(1_700_000_000_123).unwrap(),
            "2023-11-14T22:13:20.123Z"
        );
        assert_eq!(rfc3339(u64::MAX), None);
    }

    #[test]
    fn times_are_parsed_in_any_time_zone() {
        for (text, ms) in [
            ("2023-11-14T22:13:20.123Z", Some(1_700_000_000_123)),
            ("2023-11-14T23:13:20.123999+01:00", Some(1_700_000_000_123)),
            ("1969-12-31T00:00:00Z", Some(0)),
            ("2023-11-14", None),
            ("2023-11-14T22:13:20", None),
            ("yesterday", None),
        ] {
            assert_eq!(parse_rfc3339(text), ms, "{text}");
        }
    }
}
