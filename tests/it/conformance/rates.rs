use std::sync::Arc;
use std::time::Duration;

use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Fingerprint, Rate, RateLimited, RateName, ThreadId};
use threadkeep_store::Counted;

use super::room::Room;

type Named = (RateName, Rate);

fn new_threads(rate: &str) -> Named {
    (RateName::NewThreads, rate.parse().unwrap())
}

fn writes(rate: &str) -> Named {
    (RateName::Writes, rate.parse().unwrap())
}

fn to_thread(rate: &str) -> Named {
    (RateName::ThreadWrites, rate.parse().unwrap())
}

fn random_address() -> Fingerprint {
    Fingerprint(rand::random())
}

async fn take(room: &Room, subject: Counted<'_>, rates: &[Named]) -> Option<RateLimited> {
    room.backend.take_rates(subject, rates).await.unwrap()
}

async fn remaining(room: &Room, subject: Counted<'_>, rate: Named) -> usize {
    let mut taken = 0;
    while taken < 10 && take(room, subject, &[rate]).await.is_none() {
        taken += 1;
    }
    taken
}

/// Advances the store's clock by the reported `retry_after_ms`.
fn wait(room: &Room, limited: RateLimited) {
    room.advance(Duration::from_millis(limited.retry_after_ms));
}

async fn a_burst_is_allowed_and_then_one_request_per_interval(room: Room) {
    let address = random_address();
    let (address, rate) = (Counted::Address(&address), [writes("4/1h")]);
    for _ in 0..4 {
        assert_eq!(take(&room, address, &rate).await, None);
    }

    let refused = take(&room, address, &rate).await.unwrap();
    assert_eq!(refused.limit, RateName::Writes);
    assert!(
        (850_000..=900_000).contains(&refused.retry_after_ms),
        "{refused:?}"
    );
    // rejected requests do not count
    for _ in 0..5 {
        assert!(take(&room, address, &rate).await.is_some());
    }
    wait(&room, refused);
    assert_eq!(remaining(&room, address, rate[0]).await, 1);
    room.advance(Duration::from_secs(2_700));
    assert_eq!(remaining(&room, address, rate[0]).await, 3);
    room.advance(Duration::from_secs(100_000));
    assert_eq!(remaining(&room, address, rate[0]).await, 4);
}

async fn a_burst_may_be_smaller_than_the_count(room: Room) {
    let address = random_address();
    let (address, rate) = (Counted::Address(&address), writes("60/1h burst 2"));

    assert_eq!(remaining(&room, address, rate).await, 2);
    room.advance(Duration::from_secs(60));
    assert_eq!(remaining(&room, address, rate).await, 1);
}

async fn several_rates_are_taken_together_or_not_at_all(room: Room) {
    let address = random_address();
    let address = Counted::Address(&address);
    let both = [writes("5/1d"), new_threads("2/1d")];
    for _ in 0..2 {
        assert_eq!(take(&room, address, &both).await, None);
    }

    for _ in 0..4 {
        let refused = take(&room, address, &both).await.unwrap();
        assert_eq!(refused.limit, RateName::NewThreads);
    }

    assert_eq!(remaining(&room, address, both[0]).await, 3);
}

async fn of_two_exhausted_rates_the_one_with_the_longest_wait_is_reported(room: Room) {
    let address = random_address();
    let address = Counted::Address(&address);
    let both = [writes("1/10s"), new_threads("1/1h")];
    assert_eq!(take(&room, address, &both).await, None);

    let refused = take(&room, address, &both).await.unwrap();

    assert_eq!(refused.limit, RateName::NewThreads);
    assert!(refused.retry_after_ms > 3_000_000, "{refused:?}");
}

async fn permits_that_are_given_back_can_be_taken_again(room: Room) {
    let address = random_address();
    let address = Counted::Address(&address);
    let both = [writes("3/1d"), new_threads("3/1d")];
    for _ in 0..3 {
        assert_eq!(take(&room, address, &both).await, None);
    }

    for _ in 0..2 {
        room.backend
            .give_back_rates(address, &both[1..])
            .await
            .unwrap();
    }
    let never_taken = random_address();
    let never_taken = Counted::Address(&never_taken);
    room.backend
        .give_back_rates(never_taken, &both)
        .await
        .unwrap();

    assert_eq!(remaining(&room, address, both[0]).await, 0);
    assert_eq!(remaining(&room, address, both[1]).await, 2);
    assert_eq!(remaining(&room, never_taken, both[0]).await, 3);
}

async fn addresses_threads_and_other_scopes_are_counted_separately(room: Room) {
    let (one, other) = (random_address(), random_address());
    let [first, second] = [ThreadId::random(), ThreadId::random()].map(ScopeId::Thread);
    let session: ScopeId = format!("session:{}", ThreadId::random()).parse().unwrap();
    let rate = to_thread("2/1d");
    let subjects = [
        Counted::Address(&one),
        Counted::Address(&other),
        Counted::Scope(&first),
        Counted::Scope(&second),
        Counted::Scope(&session),
    ];

    for subject in subjects {
        assert_eq!(remaining(&room, subject, rate).await, 2, "{subject:?}");
    }
}

async fn a_lower_limit_applies_immediately(room: Room) {
    let address = random_address();
    let address = Counted::Address(&address);
    assert_eq!(remaining(&room, address, writes("9/1d")).await, 9);

    let refused = take(&room, address, &[writes("10/10s")]).await.unwrap();

    assert!(refused.retry_after_ms <= 1_000, "{refused:?}");
}

async fn concurrent_requests_do_not_exceed_the_rate(room: Room) {
    let (room, address) = (Arc::new(room), random_address());
    let workers: Vec<_> = (0..4).map(|_| room.backend.for_worker()).collect();
    let requests = (0..40).map(|number: usize| {
        let rates = Arc::clone(&workers[number % workers.len()]);
        tokio::spawn(async move {
            let rate = [writes("7/1d")];
            rates
                .take_rates(Counted::Address(&address), &rate)
                .await
                .unwrap()
        })
    });
    let mut allowed = 0;
    for request in requests.collect::<Vec<_>>() {
        allowed += usize::from(request.await.unwrap().is_none());
    }

    assert_eq!(allowed, 7);
}

super::over_every_store! {
    a_burst_is_allowed_and_then_one_request_per_interval,
    a_burst_may_be_smaller_than_the_count,
    several_rates_are_taken_together_or_not_at_all,
    of_two_exhausted_rates_the_one_with_the_longest_wait_is_reported,
    permits_that_are_given_back_can_be_taken_again,
    addresses_threads_and_other_scopes_are_counted_separately,
    a_lower_limit_applies_immediately,
    concurrent_requests_do_not_exceed_the_rate,
}
