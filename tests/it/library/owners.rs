use std::num::NonZeroU64;

use actix_web::test::TestRequest;
use actix_web::{HttpRequest, HttpResponse};
use threadkeep::owners::{Owner, OwnerUsage, ThreadOrder};
use threadkeep::{ApiError, Thread, Threads};
use threadkeep_identity::ProviderError;

use super::{Response, id_of};

fn user(request: &HttpRequest) -> Result<Option<Owner>, ProviderError> {
    let user = request.headers().get("x-user");
    let user = user.map(|value| Owner::new(value.to_str().unwrap()));
    user.transpose()
        .map_err(|error| ProviderError::Untrusted(Some(error.into())))
}

fn owner(text: &str) -> Owner {
    Owner::new(text).unwrap()
}

async fn visit(
    threads: &Threads,
    user: Option<&str>,
    thread: Option<&str>,
    has_write: bool,
) -> Response {
    let handler = move |thread: Thread| async move {
        if has_write {
            thread.state().increment("visits", 1)?;
        }
        let visits: Option<i64> = thread.state().get("visits").await?;
        Ok::<_, ApiError>(visits.unwrap_or_default().to_string())
    };
    super::call_app(threads, request(user, thread), handler).await
}

fn request(user: Option<&str>, thread: Option<&str>) -> TestRequest {
    let headers = [("x-user", user), ("x-thread-id", thread)];
    let headers = headers.into_iter();
    headers.fold(TestRequest::post(), |request, (name, value)| match value {
        Some(value) => request.insert_header((name, value)),
        None => request,
    })
}

fn signed(response: &Response) -> String {
    super::header(response, "x-thread-id").unwrap().to_owned()
}

#[actix_web::test]
async fn a_thread_belongs_to_the_first_user_who_writes_to_it() {
    let threads = Threads::builder().owners(user).build().await.unwrap();
    let made = visit(&threads, None, None, true).await;
    let thread = signed(&made);
    assert_eq!(
        visit(&threads, Some("ann"), Some(&thread), false)
            .await
            .status(),
        200
    );
    assert_eq!(
        visit(&threads, Some("bob"), Some(&thread), true)
            .await
            .status(),
        200
    );

    for has_write in [false, true] {
        let foreign = visit(&threads, Some("ann"), Some(&thread), has_write).await;
        let unnamed = visit(&threads, None, Some(&thread), has_write).await;
        assert_eq!(
            (foreign.status().as_u16(), unnamed.status().as_u16()),
            (403, 401)
        );
    }
    let own = visit(&threads, Some("bob"), Some(&thread), true).await;
    assert_eq!(actix_web::test::read_body(own).await, "3");
}

#[actix_web::test]
async fn an_app_lists_and_counts_the_threads_of_an_owner() {
    let threads = Threads::builder().owners(user).build().await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let made = visit(&threads, Some("ann"), None, true).await;
        ids.insert(0, id_of(&made).unwrap());
    }
    visit(&threads, Some("bob"), None, true).await;

    let of_ann = threads.owned_by(&owner("ann"));
    let first = of_ann.list(ThreadOrder::Created, None, 2).await.unwrap();
    let rest = of_ann
        .list(ThreadOrder::Created, first.next, 2)
        .await
        .unwrap();

    let listed = first.threads.iter().chain(&rest.threads);
    let mut listed: Vec<_> = listed.map(|((_, id), _)| *id).collect();
    // threads of the same millisecond are listed by id
    listed.sort();
    ids.sort();
    assert_eq!(listed, ids);
    assert_eq!(rest.next, None);
    let owned = OwnerUsage {
        threads: 3,
        size_bytes: 3 * 12,
    };
    assert_eq!(of_ann.measure().await.unwrap(), owned);
    assert!(of_ann.list(ThreadOrder::Created, None, 0).await.is_err());
}

#[actix_web::test]
async fn an_app_can_set_the_owner_of_a_thread() {
    let threads = Threads::builder().owners(user).build().await.unwrap();
    let give = async |thread: Thread| {
        assert_eq!(thread.owner().await?, None);
        thread.set_owner(Some(owner("ann"))).await?;
        Ok::<_, ApiError>(HttpResponse::Ok().finish())
    };
    let given = super::call_app(&threads, request(None, None), give).await;
    assert_eq!(given.status(), 200);

    let look = async |thread: Thread| {
        let owner = thread.owner().await?;
        Ok::<_, ApiError>(owner.unwrap().as_str().to_owned())
    };
    let thread = signed(&given);
    let own = super::call_app(&threads, request(Some("ann"), Some(&thread)), look).await;
    assert_eq!(actix_web::test::read_body(own).await, "ann");
    let foreign = super::call_app(&threads, request(Some("bob"), Some(&thread)), look).await;
    assert_eq!(foreign.status(), 403);
}

#[actix_web::test]
async fn turns_scopes_and_callbacks_are_refused_to_other_users() {
    let threads = Threads::builder().owners(user).build().await.unwrap();
    let thread = signed(&visit(&threads, Some("ann"), None, true).await);
    let turn = async |thread: Thread| {
        thread.turn(std::time::Duration::from_secs(5)).await?;
        Ok::<_, ApiError>("taken")
    };
    let set = async |thread: Thread| {
        thread.keys().set("k", "1").await?;
        Ok::<_, ApiError>("set")
    };
    let listen = async |thread: Thread| {
        thread
            .on_destroyed(async |_| Ok::<_, std::fmt::Error>(()))
            .await?;
        Ok::<_, ApiError>("listens")
    };
    for (user, status) in [("bob", 403), ("ann", 200)] {
        let request = || request(Some(user), Some(&thread));
        assert_eq!(
            super::call_app(&threads, request(), turn).await.status(),
            status
        );
        assert_eq!(
            super::call_app(&threads, request(), set).await.status(),
            status
        );
        assert_eq!(
            super::call_app(&threads, request(), listen).await.status(),
            status
        );
    }
}

#[actix_web::test]
async fn an_app_may_require_owners_and_limit_their_threads() {
    let one = NonZeroU64::new(1).unwrap();
    let builder = Threads::builder().required_owners(user);
    let threads = builder.max_threads_per_owner(one).build().await.unwrap();
    let unnamed = visit(&threads, None, None, true).await;
    assert_eq!(unnamed.status(), 401);
    assert_eq!(super::header(&unnamed, "x-thread-id"), None);

    let first = visit(&threads, Some("ann"), None, true).await;
    let again = visit(&threads, Some("ann"), Some(&signed(&first)), true).await;
    let second = visit(&threads, Some("ann"), None, true).await;

    let statuses = [first, again, second].map(|response| response.status().as_u16());
    assert_eq!(statuses, [200, 200, 409]);
}
