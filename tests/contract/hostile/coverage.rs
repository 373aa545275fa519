use super::catalog::Catalog;
use super::dice::Dice;
use super::foreign::EXPECTED_FAILURES;
use super::wire::{Link, Sent};
use super::world::{Objects, World};
use crate::support::server::{Backend, Server};

/// Maximum number of requests per operation. At least one of these requests must succeed.
const ATTEMPTS_MAX: u64 = 400;

#[tokio::test]
async fn every_operation_succeeds_with_a_valid_request() {
    let server = Server::builder(Backend::Memory)
        .set("THREADKEEP_LOG", "error,threadkeep::app=info")
        .set("THREADKEEP_TOMBSTONE_SECONDS", 1)
        .set("THREADKEEP_WEBHOOK_ALLOW_PRIVATE", true)
        .set("THREADKEEP_CORS_ORIGINS", "https://app.example.com")
        .start();
    let catalog = Catalog::read();
    let objects = Objects::create(&server.client()).await.unwrap();

    let mut failing = Vec::new();
    for operation in catalog.operations() {
        let mut last = String::new();
        let mut is_done = false;
        for number in 0..ATTEMPTS_MAX {
            let mut link = Link::open(server.address()).await.unwrap();
            let world = World {
                objects: &objects,
                block: number / 16,
            };
            let mut requests = Vec::new();
            if number % 16 == 0 {
                requests.extend(world.begin());
            }
            let mut dice = Dice::new(1, number);
            requests.push(catalog.request(operation, world, &mut dice));
            for request in requests {
                let bytes = request.bytes();
                let sent = Sent {
                    bytes: &bytes,
                    is_end: false,
                };
                let answers = link.answers(sent, &[request.method == "HEAD"]).await;
                let answer = answers
                    .unwrap_or_else(|fault| panic!("{}: {fault}", operation.name))
                    .remove(0);
                last = format!("{}\n{}", answer.head, answer.body.escape_ascii());
                is_done = matches!(answer.status, 200..=299);
            }
            if is_done {
                break;
            }
        }
        let is_expected = !EXPECTED_FAILURES
            .iter()
            .any(|(name, _)| *name == operation.name);
        if is_done != is_expected {
            failing.push(format!("{}: {last}", operation.name));
        }
    }
    assert!(failing.is_empty(), "{}", failing.join("\n\n"));
}
