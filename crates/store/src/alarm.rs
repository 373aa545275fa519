use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};

/// A timer for deadlines that are moved often and rarely pass. Resets the runtime's timer only after it has fired, or
/// if it must fire earlier.
#[derive(Debug, Default)]
pub struct Alarm {
    sleep: Option<Pin<Box<Sleep>>>,
    is_set: bool,
}

impl Alarm {
    /// Returns whether `end` has passed. If not, wakes the most recent caller's task at `end` or earlier. The task must
    /// then poll again.
    pub fn poll(&mut self, cx: &mut Context<'_>, end: Instant) -> Poll<()> {
        loop {
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(end)));
            if !self.is_set || sleep.deadline() > end {
                sleep.as_mut().reset(end);
                self.is_set = true;
            }
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.is_set = false;
            if Instant::now() >= end {
                return Poll::Ready(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn an_alarm_fires_at_the_most_recent_deadline() {
        let start = Instant::now();
        let mut alarm = Alarm::default();
        let after = |ms| start + Duration::from_millis(ms);
        let mut check = async |end| poll_fn(|cx| Poll::Ready(alarm.poll(cx, end))).await;

        assert!(check(after(30)).await.is_pending());
        assert!(check(after(60_000)).await.is_pending());
        assert!(check(after(80)).await.is_pending());
        poll_fn(|cx| alarm.poll(cx, after(80))).await;
        assert!(Instant::now() >= after(80) && Instant::now() < after(30_000));

        poll_fn(|cx| alarm.poll(cx, after(120))).await;
        assert!(Instant::now() >= after(120));
        poll_fn(|cx| alarm.poll(cx, start)).await;
    }
}
