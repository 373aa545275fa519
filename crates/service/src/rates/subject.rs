use std::cell::RefCell;
use std::future::Future;

use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Fingerprint, ThreadId};

tokio::task_local! {
    static SUBJECT: RateSubject;
}

/// The client of a request, and the scopes for which the request has already been counted.
#[derive(Debug)]
pub struct RateSubject(RefCell<Counted>);

#[derive(Debug, Default)]
struct Counted {
    /// Digest of the client's address; `None` if requests are not counted against the address.
    address: Option<Fingerprint>,
    has_counted_address: bool,
    scopes: Vec<ScopeId>,
    checked: Vec<ThreadId>,
}

/// The rate limits that a write must still be counted against.
#[derive(Debug)]
pub(super) struct Uncounted {
    pub(super) address: Option<Fingerprint>,
    pub(super) is_first: bool,
    pub(super) is_first_to_scope: bool,
    /// True if the scope is a thread, and this request has not yet checked whether that thread exists.
    pub(super) may_make: bool,
}

impl RateSubject {
    /// Identifies a client by a digest of its address.
    #[must_use]
    pub fn at(address: Option<Fingerprint>) -> Self {
        Self(RefCell::new(Counted {
            address,
            ..Counted::default()
        }))
    }

    /// Identifies a back end. Its requests are not counted against its address, because it acts for many clients.
    #[must_use]
    pub fn back_end() -> Self {
        Self::at(None)
    }

    /// Runs `work` as part of this request.
    pub async fn around<T>(self, work: impl Future<Output = T>) -> T {
        SUBJECT.scope(self, work).await
    }

    /// Returns the digest of the client address of the current task, for use in a different task.
    #[must_use]
    pub fn address() -> Option<Fingerprint> {
        let address = SUBJECT.try_with(|subject| subject.0.borrow().address);
        address.ok().flatten()
    }

    /// Stops counting writes against the task's client address. Called once the client has proved to be a back end.
    pub fn exempt_address() {
        // `try_with` fails if there are no limits, because then no subject is set
        SUBJECT
            .try_with(|subject| subject.0.borrow_mut().address = None)
            .ok();
    }

    pub(crate) fn is_known() -> bool {
        SUBJECT.try_with(|_| ()).is_ok()
    }

    /// Returns the rate limits that the next write to `scope` must still be counted against. Without a subject, each
    /// write is counted separately.
    pub(super) fn uncounted(scope: &ScopeId) -> Uncounted {
        let uncounted = SUBJECT.try_with(|subject| {
            let counted = subject.0.borrow();
            Uncounted {
                address: counted.address,
                is_first: !counted.has_counted_address,
                is_first_to_scope: !counted.scopes.contains(scope),
                may_make: scope
                    .thread()
                    .is_some_and(|id| !counted.checked.contains(id)),
            }
        });
        uncounted.unwrap_or(Uncounted {
            address: None,
            is_first: true,
            is_first_to_scope: true,
            may_make: false,
        })
    }

    pub(super) fn record_counted(scope: &ScopeId, checked_existence: bool) {
        let note = |subject: &Self| {
            let mut counted = subject.0.borrow_mut();
            counted.has_counted_address = true;
            if !counted.scopes.contains(scope) {
                counted.scopes.push(scope.clone());
            }
            if checked_existence && let Some(id) = scope.thread() {
                counted.checked.push(*id);
            }
        };
        // fails without a subject; the next write is then counted again
        SUBJECT.try_with(note).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_is_counted_once_per_address_and_once_per_scope() {
        let address = Fingerprint([1; 16]);
        let [one, other] = [ThreadId::random(), ThreadId::random()].map(ScopeId::Thread);

        let (first, second, third) = RateSubject::at(Some(address))
            .around(async {
                let first = RateSubject::uncounted(&one);
                RateSubject::record_counted(&one, true);
                (
                    first,
                    RateSubject::uncounted(&one),
                    RateSubject::uncounted(&other),
                )
            })
            .await;

        assert_eq!(first.address, Some(address));
        assert!(first.is_first && first.is_first_to_scope && first.may_make);
        assert!(!second.is_first && !second.is_first_to_scope && !second.may_make);
        assert!(!third.is_first && third.is_first_to_scope && third.may_make);
    }

    #[tokio::test]
    async fn a_back_end_and_a_task_without_a_subject_have_no_address() {
        let address = Some(Fingerprint([1; 16]));
        let shown = async {
            RateSubject::exempt_address();
            RateSubject::address()
        };

        assert_eq!(RateSubject::at(address).around(shown).await, None);
        assert_eq!(
            RateSubject::at(address)
                .around(async { RateSubject::address() })
                .await,
            address
        );
        assert_eq!(RateSubject::address(), None);
    }
}
