use std::fmt::Display;

use serde::de::{Error, Expected, Unexpected};

use threadkeep_domain::Excerpt;
use threadkeep_web::ApiError;

/// Describes why a value in a body does not match the expected type. Never repeats a value that the client sent.
#[derive(Debug, Default)]
pub struct BodyFault {
    before: &'static str,
    /// Path of the value, such as `entries[3].key`. Empty for the whole body.
    path: String,
    after: String,
    is_length: bool,
}

impl BodyFault {
    /// Creates the error "... must be `wanted`".
    pub fn unwanted(wanted: impl Display) -> Self {
        Self {
            after: format!(" must be {wanted}"),
            ..Self::default()
        }
    }

    fn at(name: &str, after: &str) -> Self {
        Self {
            path: name.into(),
            after: after.into(),
            ..Self::default()
        }
    }

    pub(crate) fn is_length(&self) -> bool {
        self.is_length
    }

    pub fn in_member(mut self, name: &str) -> Self {
        let is_dotted = !self.path.is_empty() && !self.path.starts_with('[');
        self.path.insert_str(0, if is_dotted { "." } else { "" });
        self.path.insert_str(0, name);
        self
    }

    pub(crate) fn in_element(self, index: usize) -> Self {
        self.in_member(&format!("[{index}]"))
    }
}

impl std::error::Error for BodyFault {}

impl Display for BodyFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            before,
            path,
            after,
            ..
        } = self;
        match (*before, path.as_str()) {
            ("", "") => write!(f, "The value{after}"),
            _ => write!(f, "{before}`{path}`{after}"),
        }
    }
}

impl Error for BodyFault {
    fn custom<T: Display>(wanted: T) -> Self {
        Self::unwanted(wanted)
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        match found {
            // the body has a bare name instead of an object with `op`
            Unexpected::UnitVariant => Self::unwanted("an object"),
            _ => Self::unwanted(wanted),
        }
    }

    fn invalid_length(_: usize, wanted: &dyn Expected) -> Self {
        Self {
            is_length: true,
            ..Self::unwanted(wanted)
        }
    }

    fn unknown_variant(_: &str, variants: &'static [&'static str]) -> Self {
        Self::unwanted(format_args!("one of {}", variants.join(", ")))
    }

    fn unknown_field(name: &str, allowed: &'static [&'static str]) -> Self {
        let allowed = match allowed {
            [] => ". No others are allowed".into(),
            _ => format!(". Allowed: {}", allowed.join(", ")),
        };
        Self {
            before: "Unknown field ",
            ..Self::at(&Excerpt(name).to_string(), &allowed)
        }
    }

    fn missing_field(name: &'static str) -> Self {
        Self::at(name, " is missing")
    }

    fn duplicate_field(name: &'static str) -> Self {
        Self::at(name, " is given twice")
    }
}

impl From<BodyFault> for ApiError {
    fn from(fault: BodyFault) -> Self {
        Self::InvalidParameter(fault.to_string())
    }
}
