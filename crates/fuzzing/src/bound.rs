use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use allocation_counter::AllocationInfo;
use rustix::time::{ClockId, clock_gettime};

/// Maximum cost of code per byte of its input. Bounds are linear, so code with a quadratic cost exceeds them if its
/// input is long enough.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    pub held: u64,
    /// Bytes allocated in total, including freed bytes and copies.
    pub allocated: u64,
    /// CPU time of the thread in a debug build, in ns.
    pub nanos: u64,
}

/// Memory that an input of any size may use.
const CONSTANT_BYTES: u64 = 64 * 1024;
const CONSTANT_TIME: Duration = Duration::from_millis(50);
/// Maximum number of measurements. Slow measurements are repeated, because other processes may cause them.
const ATTEMPTS: usize = 3;

impl Bound {
    /// Bound for code that scans its input a few times and builds a table of its parts. Even the shortest member of an
    /// object, `"":0,`, becomes a key, a value and a table entry.
    pub const LINEAR: Self = Self {
        held: 64,
        allocated: 200,
        nanos: 3_000,
    };

    /// Runs code on an input of `input_bytes` bytes. Panics if the cost exceeds the bound.
    pub fn hold<T>(self, input_bytes: usize, code: impl Fn() -> T) -> T {
        let input_bytes = input_bytes as u64;
        let limit = CONSTANT_TIME + Duration::from_nanos(self.nanos * input_bytes);
        let mut attempts = 1;
        let (result, memory) = loop {
            let (result, memory, time) = measured(&code);
            if time <= limit {
                break (result, memory);
            }
            assert!(
                attempts < ATTEMPTS,
                "{time:?} for {input_bytes} bytes, not {limit:?}"
            );
            attempts += 1;
        };
        let limit = |per_byte: u64| CONSTANT_BYTES + per_byte * input_bytes;
        let (held, allocated) = (memory.bytes_max, memory.bytes_total);
        assert!(
            held <= limit(self.held),
            "{held} bytes held for {input_bytes}, not {}",
            limit(self.held)
        );
        assert!(
            allocated <= limit(self.allocated),
            "{allocated} bytes allocated for {input_bytes}, not {}",
            limit(self.allocated)
        );
        result
    }
}

/// Measures the cost of code. Counts only this thread's memory and time, because other tests run at the same time.
fn measured<T>(code: impl Fn() -> T) -> (T, AllocationInfo, Duration) {
    let mut result = None;
    let start = thread_time();
    let memory = allocation_counter::measure(|| {
        // the counter does not support unwinding
        result = Some(catch_unwind(AssertUnwindSafe(&code)));
    });
    let time = thread_time().saturating_sub(start);
    match result.expect("the code was run") {
        Ok(result) => (result, memory, time),
        Err(panic) => resume_unwind(panic),
    }
}

/// Returns the CPU time of this thread, which does not depend on other processes.
pub fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.try_into().expect("this clock starts at 0")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIGHT: Bound = Bound {
        held: 2,
        allocated: 4,
        nanos: 100,
    };

    fn exceeds_bound(code: impl Fn()) -> bool {
        catch_unwind(AssertUnwindSafe(|| TIGHT.hold(100_000, code))).is_err()
    }

    #[test]
    fn code_within_its_bound_passes() {
        assert!(!exceeds_bound(|| drop(vec![1_u8; 150_000])));
    }

    #[test]
    fn held_memory_and_allocated_memory_have_separate_limits() {
        assert!(exceeds_bound(|| drop(vec![1_u8; 400_000])));
        assert!(exceeds_bound(
            || (0..9).for_each(|_| drop(vec![1_u8; 100_000]))
        ));
    }

    #[test]
    fn cpu_time_is_limited() {
        let busy = |time| {
            let end = thread_time() + time;
            while thread_time() < end {}
        };

        assert!(!exceeds_bound(|| busy(Duration::from_millis(10))));
        assert!(exceeds_bound(|| busy(Duration::from_millis(70))));
    }
}
