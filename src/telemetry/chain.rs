use std::error::Error;
use std::fmt;

/// Displays an error and its sources on one line, separated by colons.
#[derive(Debug, Clone, Copy)]
pub struct Chain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = self.0.to_string();
        f.write_str(&told)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            // skips a source that the error's text already contains
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
