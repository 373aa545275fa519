//! Errors as one line.

use std::error::Error;
use std::fmt;

/// Shows an error and all its sources, with colons between.
#[derive(Debug, Clone, Copy)]
pub struct Chain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = self.0.to_string();
        f.write_str(&told)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            // skips a source that the text of the error already contains
            let text = error.to_string();
            if !told.ends_with(&text) {
                write!(f, ": {text}")?;
            }
            told = text;
            source = error.source();
        }
        Ok(())
    }
}
