use std::fs;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

pub(super) struct Corpus {
    folder: PathBuf,
    files: Vec<(String, Vec<u8>)>,
}

impl Corpus {
    pub(super) fn open(target: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/corpus")
            .join(target);
        let entries = fs::read_dir(&folder).expect("a target has a corpus");
        let mut files: Vec<_> = entries
            .map(|entry| {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                (name, fs::read(entry.path()).unwrap())
            })
            .collect();
        // gives a seed the same inputs on every machine
        files.sort_unstable();
        Self { folder, files }
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files
            .iter()
            .map(|(name, input)| (name.as_str(), input.as_slice()))
    }

    pub(super) fn inputs(&self) -> Vec<&[u8]> {
        self.files().map(|(_, input)| input).collect()
    }

    pub(super) fn add(&self, input: &[u8]) -> String {
        let digest = Sha256::digest(input);
        let name = format!("failed-{}", hex::encode(&digest[..4]));
        let path = self.folder.join(name);
        fs::write(&path, input).expect("the corpus can be written to");
        path.display().to_string()
    }
}
