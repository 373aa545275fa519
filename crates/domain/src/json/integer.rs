/// Why an increment failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerError {
    /// The text is not a decimal integer. Examples are `1.0`, `1e2` and strings.
    NotAnInteger,
    /// The value or the sum does not fit in a signed 64-bit integer.
    Overflow,
}

/// Adds `by` to an integer in JSON text, without loss of precision.
pub fn add(text: &str, by: i64) -> Result<i64, IntegerError> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(IntegerError::NotAnInteger);
    }
    // the text contains only digits and possibly a sign, so parsing can fail only on overflow
    let value: i64 = text.parse().map_err(|_| IntegerError::Overflow)?;
    value.checked_add(by).ok_or(IntegerError::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact_to_the_last_bit() {
        assert_eq!(add("9007199254740992", 1), Ok(9_007_199_254_740_993));
        assert_eq!(add("-0", 5), Ok(5));
        assert_eq!(add("9223372036854775806", 1), Ok(i64::MAX));
        assert_eq!(add("9223372036854775807", 1), Err(IntegerError::Overflow));
        assert_eq!(add("9223372036854775808", -1), Err(IntegerError::Overflow));
        assert_eq!(add("-9223372036854775808", -1), Err(IntegerError::Overflow));
    }

    #[test]
    fn non_integers_are_rejected() {
        for text in ["1.0", "1e2", "\"1\"", "null", "{}", "-", "true"] {
            assert_eq!(add(text, 1), Err(IntegerError::NotAnInteger), "{text}");
        }
    }
}
