use std::path::{Path, PathBuf};
use std::process::Command;

use super::redis::Directory;

#[derive(Debug)]
pub struct Authority {
    dir: Directory,
    pub own: Issued,
}

#[derive(Debug, Clone)]
pub struct Issued {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn create() -> Self {
        let dir = Directory::create();
        let own = Issued::at(dir.path(), "authority");
        own.make(&["-subj", "/CN=authority"], &EC);
        Self { dir, own }
    }

    pub fn issue(&self, name: &str) -> Issued {
        self.issue_with(name, &EC)
    }

    pub fn issue_with(&self, name: &str, algorithm: &[&str]) -> Issued {
        let issued = Issued::at(self.dir.path(), name);
        issued.make_signed(
            &self.own,
            &["-addext", "basicConstraints=critical,CA:FALSE"],
            algorithm,
        );
        issued
    }

    pub fn intermediate(&self) -> Self {
        let dir = Directory::create();
        let own = Issued::at(dir.path(), "intermediate");
        own.make_signed(
            &self.own,
            &["-addext", "basicConstraints=critical,CA:TRUE"],
            &EC,
        );
        Self { dir, own }
    }

    pub fn file(&self, name: &str) -> String {
        path_text(self.dir.path().join(name))
    }
}

const EC: [&str; 3] = ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];

impl Issued {
    fn at(dir: &Path, name: &str) -> Self {
        let file = |extension| path_text(dir.join(format!("{name}{extension}")));
        Self {
            certificate: file(".pem"),
            key: file(".key"),
        }
    }

    fn make(&self, options: &[&str], algorithm: &[&str]) {
        let request = ["req", "-x509", "-nodes", "-days", "2", "-newkey"];
        let files = ["-keyout", &self.key, "-out", &self.certificate];
        openssl(&[&request, algorithm, options, &files].concat());
    }

    fn make_signed(&self, issuer: &Self, options: &[&str], algorithm: &[&str]) {
        let issuer_options = ["-CA", &issuer.certificate, "-CAkey", &issuer.key];
        let subject = format!("/CN={}", self.certificate.len());
        let names = ["-subj", &subject, "-addext", "subjectAltName=IP:127.0.0.1"];
        self.make(&[&issuer_options[..], &names, options].concat(), algorithm);
    }

    /// Returns a copy whose private key is in the traditional format, the predecessor of PKCS#8.
    pub fn traditional(&self) -> Self {
        let key = format!("{}.traditional", self.key);
        openssl(&["pkey", "-in", &self.key, "-traditional", "-out", &key]);
        Self {
            key,
            ..self.clone()
        }
    }
}

pub fn openssl(arguments: &[&str]) {
    let output = Command::new("openssl").args(arguments).output();
    let output =
        output.unwrap_or_else(|error| panic!("this test needs openssl on the PATH: {error}"));
    assert!(output.status.success(), "{output:?}");
}

fn path_text(path: PathBuf) -> String {
    path.into_os_string().into_string().unwrap()
}
