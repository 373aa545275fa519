use std::sync::OnceLock;

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, EntityTag, Header, HeaderName,
    IfNoneMatch, REFERRER_POLICY,
};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, Resource};
use flate2::Compression;
use sha2::{Digest, Sha256};

use threadkeep_http::{Encoded, VARY_BY_ENCODING, gzip, read_only};

/// Allows the console to run only its own script, call only this server, and insert only text, not markup (Trusted
/// Types). No page may embed the console in a frame, to prevent clickjacking.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

struct File {
    path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
    prepared: OnceLock<Prepared>,
}

/// Parts of a file that are computed once, on first use.
struct Prepared {
    /// First half of the SHA-256 digest of the file.
    digest: String,
    gzip: Bytes,
}

static FILES: [File; 4] = [
    File::new(
        "/console/",
        "text/html; charset=utf-8",
        include_bytes!("dist/index.html"),
    ),
    File::new(
        "/console/console.js",
        "text/javascript; charset=utf-8",
        include_bytes!("dist/console.js"),
    ),
    File::new(
        "/console/console.css",
        "text/css; charset=utf-8",
        include_bytes!("dist/console.css"),
    ),
    File::new(
        "/console/icon.svg",
        "image/svg+xml",
        include_bytes!("dist/icon.svg"),
    ),
];

pub(super) fn resources() -> impl Iterator<Item = Resource> {
    FILES.iter().map(|file| {
        read_only(file.path, move |request: HttpRequest| {
            std::future::ready(file.answer(&request))
        })
    })
}

impl File {
    const fn new(path: &'static str, kind: &'static str, bytes: &'static [u8]) -> Self {
        Self {
            path,
            kind,
            bytes,
            prepared: OnceLock::new(),
        }
    }

    fn prepared(&self) -> &Prepared {
        self.prepared.get_or_init(|| Prepared {
            digest: hex::encode(&Sha256::digest(self.bytes)[..16]),
            gzip: gzip(self.bytes, Compression::best()),
        })
    }

    /// Serves the file. Browsers revalidate files with their `ETag`, so they load new versions right after an update.
    fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let Prepared { digest, gzip } = self.prepared();
        let body = Encoded::choose(request, Bytes::from_static(self.bytes), || gzip.clone());
        let tag = EntityTag::new_strong(match body.is_gzip {
            true => format!("{digest}-gzip"),
            false => digest.clone(),
        });
        let is_known = is_known(request, &tag);
        let mut answer = match is_known {
            true => HttpResponse::NotModified(),
            false => HttpResponse::Ok(),
        };
        answer
            .insert_header((ETAG, tag))
            .insert_header((CACHE_CONTROL, "no-cache"))
            .insert_header(VARY_BY_ENCODING)
            .insert_header((CONTENT_SECURITY_POLICY, POLICY))
            .insert_header((REFERRER_POLICY, "no-referrer"))
            .insert_header((OPENER_POLICY, "same-origin"))
            .insert_header((RESOURCE_POLICY, "same-origin"));
        if is_known {
            return answer.finish();
        }
        answer.insert_header((CONTENT_TYPE, self.kind));
        body.answer(answer)
    }
}

fn is_known(request: &HttpRequest, tag: &EntityTag) -> bool {
    match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|cached| cached.weak_eq(tag)),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum size of all files together, compressed as browsers load them.
    const COMPRESSED_MAX_BYTES: usize = 250 * 1024;

    #[test]
    fn the_files_are_small() {
        let bytes: usize = FILES.iter().map(|file| file.prepared().gzip.len()).sum();

        assert!(bytes <= COMPRESSED_MAX_BYTES, "{bytes}");
    }

    #[test]
    fn the_page_has_no_inline_script_and_names_no_other_host() {
        let page = std::str::from_utf8(FILES[0].bytes).unwrap();

        for script in page.match_indices("<script") {
            let tag = &page[script.0..];
            let (tag, rest) = tag.split_once('>').unwrap();
            assert!(tag.contains(" src=\"./"), "{tag}");
            assert!(rest.starts_with("</script>"), "{rest}");
        }
        assert!(!page.contains("<style"));
        assert!(!page.contains("://"), "{page}");
    }
}
