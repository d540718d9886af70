use acorn::{scope, Cancelled, Coroutine, Step, Yielder};
use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::process::Command;
use std::rc::Rc;
use std::thread;

/// Notes in a list when it is dropped.
struct Noted(&'static str, Rc<RefCell<Vec<&'static str>>>);
impl Drop for Noted {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0);
    }
}

type Notes = Rc<RefCell<Vec<&'static str>>>;

fn notes() -> Notes {
    Notes::default()
}

fn caught<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload| match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload.downcast::<&str>().map(|text| text.to_string()).unwrap_or_else(|_| "?".into()),
    })
}

#[test]
fn values_are_moved_both_ways() {
    let mut co = Coroutine::new(|y, first: Box<i32>| {
        let second = y.suspend(vec![*first]);
        let third = y.suspend(vec![*first, *second]);
        format!("{first} {second} {third}")
    });
    assert_eq!(co.resume(Box::new(1)), Step::Yielded(vec![1]));
    assert_eq!(co.resume(Box::new(2)), Step::Yielded(vec![1, 2]));
    assert_eq!(co.resume(Box::new(3)), Step::Returned("1 2 3".to_string()));
    assert!(co.is_done());
    assert!(caught(|| co.resume(Box::new(4))).unwrap_err().contains("has ended"));
}

#[test]
fn an_iterator_ends_and_stays_ended() {
    fn walk(y: &Yielder<u32, ()>, depth: u32) {
        if depth > 0 {
            walk(y, depth - 1);
            y.suspend(depth);
            walk(y, depth - 1);
        }
    }
    let mut ruler = Coroutine::new(|y, ()| walk(y, 3));
    assert_eq!(ruler.by_ref().collect::<Vec<_>>(), [1, 2, 1, 3, 1, 2, 1]);
    assert_eq!((ruler.next(), ruler.next()), (None, None));
}

#[test]
fn a_panic_continues_in_the_resumer() {
    let dropped = notes();
    let held = Noted("held", dropped.clone());
    let mut co = Coroutine::new(move |y, ()| {
        let _held = held;
        y.suspend(1);
        resume_unwind(Box::new("out")); // a panic without the hook's message
    });
    assert_eq!(co.next(), Some(1));
    assert_eq!(caught(|| co.next()), Err("out".to_string()));
    assert!(co.is_done() && !thread::panicking());
    assert_eq!(*dropped.borrow(), ["held"]);
    assert_eq!(co.next(), None);
}

#[test]
fn a_panic_passes_through_nested_coroutines() {
    let dropped = notes();
    let (a, b) = (Noted("outer", dropped.clone()), Noted("inner", dropped.clone()));
    let mut outer = Coroutine::new(move |y: &Yielder<i32, ()>, ()| {
        let _a = a;
        let mut inner = Coroutine::new(move |y, ()| {
            let _b = b;
            y.suspend(1);
            resume_unwind(Box::new("deep"));
        });
        y.suspend(inner.next().unwrap());
        inner.next();
    });
    assert_eq!(outer.next(), Some(1));
    assert_eq!(caught(|| outer.next()), Err("deep".to_string()));
    assert_eq!(*dropped.borrow(), ["inner", "outer"]);
}

#[test]
fn a_dropped_coroutine_drops_what_it_holds() {
    let dropped = notes();
    let noted = |name| Noted(name, dropped.clone());
    let (captured, passed, local) = (noted("captured"), noted("passed"), noted("local"));
    let mut co = Coroutine::new(move |y: &Yielder<Noted, Noted>, first: Noted| {
        let _captured = captured;
        let _first = first;
        let _second = y.suspend(local);
        unreachable!();
    });
    let yielded = match co.resume(passed) {
        Step::Yielded(noted) => noted,
        Step::Returned(()) => unreachable!(),
    };
    drop(co);
    assert_eq!(*dropped.borrow(), ["passed", "captured"]);
    drop(yielded);
    assert_eq!(*dropped.borrow(), ["passed", "captured", "local"]);

    dropped.borrow_mut().clear();
    let captured = Noted("captured", dropped.clone());
    let unstarted = Coroutine::<(), ()>::new(move |_, ()| drop(captured));
    assert!(dropped.borrow().is_empty());
    drop(unstarted);
    assert_eq!(*dropped.borrow(), ["captured"]);
}

#[test]
fn cancellations_nest() {
    let dropped = notes();
    let (a, b) = (Noted("outer", dropped.clone()), Noted("inner", dropped.clone()));
    let mut outer = Coroutine::new(move |y: &Yielder<(), ()>, ()| {
        let _a = a;
        let mut inner = Coroutine::new(move |y: &Yielder<(), ()>, ()| {
            let _b = b;
            y.suspend(());
        });
        inner.next();
        y.suspend(());
    });
    outer.next();
    drop(outer);
    assert_eq!(*dropped.borrow(), ["inner", "outer"]);
}

#[test]
fn a_cancellation_can_be_caught_and_told_apart() {
    let seen = Rc::new(Cell::new(0));
    let counter = seen.clone();
    let mut co = Coroutine::new(move |y, ()| loop {
        let payload = match catch_unwind(AssertUnwindSafe(|| y.suspend(1))) {
            Ok(()) => continue,
            Err(payload) => payload,
        };
        assert!(payload.is::<Cancelled>());
        counter.set(counter.get() + 1);
        if counter.get() == 3 {
            return "in the end";
        }
    });
    assert_eq!(co.resume(()), Step::Yielded(1));
    co.cancel();
    assert_eq!(seen.get(), 3);
    assert!(co.is_done());
    co.cancel();
}

#[test]
fn another_panic_during_a_cancellation_comes_out_of_it() {
    let mut co = Coroutine::new(|y: &Yielder<(), ()>, ()| {
        let _ = catch_unwind(AssertUnwindSafe(|| y.suspend(())));
        resume_unwind(Box::new("instead"));
    });
    co.next();
    assert_eq!(caught(|| co.cancel()), Err("instead".to_string()));
    assert!(co.is_done());
}

#[test]
fn a_destructor_may_resume_others_while_its_coroutine_unwinds() {
    struct Drains(Coroutine<i32>, Rc<Cell<i32>>);
    impl Drop for Drains {
        fn drop(&mut self) {
            self.1.set(self.0.by_ref().sum());
        }
    }
    let sum = Rc::new(Cell::new(0));
    let drains = Drains(Coroutine::new(|y, ()| (1..=4).for_each(|i| y.suspend(i))), sum.clone());
    let mut co = Coroutine::new(move |y: &Yielder<(), ()>, ()| {
        let _drains = drains;
        y.suspend(());
    });
    co.next();
    drop(co);
    assert_eq!(sum.get(), 10);
}

#[test]
fn a_resumer_that_panics_may_resume_and_drop() {
    struct Uses(Coroutine<bool>, Notes);
    impl Drop for Uses {
        fn drop(&mut self) {
            assert!(thread::panicking());
            assert_eq!(self.0.next(), Some(true));
            self.0.cancel();
            self.1.borrow_mut().push("cancelled");
        }
    }
    let dropped = notes();
    let held = Noted("held", dropped.clone());
    let mut uses = Uses(
        Coroutine::new(move |y, ()| {
            let _held = held;
            loop {
                y.suspend(thread::panicking());
            }
        }),
        dropped.clone(),
    );
    assert_eq!(uses.0.next(), Some(false));
    assert_eq!(
        caught(move || {
            let _uses = uses;
            resume_unwind(Box::new("first"));
        }),
        Err("first".to_string())
    );
    assert_eq!(*dropped.borrow(), ["held", "cancelled"]);
    assert!(!thread::panicking());
}

#[test]
fn a_scoped_coroutine_borrows() {
    let mut words = vec!["b".to_string(), "a".to_string()];
    let lengths = scope(
        |y: &Yielder<&mut String, usize>, first| {
            let mut sum = first;
            for word in &mut words {
                sum += y.suspend(word);
            }
            sum
        },
        |mut co| {
            let mut step = co.resume(0);
            loop {
                match step {
                    Step::Yielded(word) => {
                        word.push('!');
                        step = co.resume(word.len());
                    }
                    Step::Returned(sum) => return sum,
                }
            }
        },
    );
    assert_eq!((lengths, words.concat()), (4, "b!a!".to_string()));
}

#[test]
fn a_scope_ends_its_coroutine_however_it_is_left() {
    let dropped = notes();
    let body = |y: &Yielder<i32, ()>, ()| {
        let _held = Noted("held", dropped.clone());
        (0..).for_each(|i| y.suspend(i));
    };
    assert_eq!(scope(body, |mut co| (co.next(), co.next())), (Some(0), Some(1)));
    assert_eq!(*dropped.borrow(), ["held"]);
    let left = caught(|| {
        scope(body, |mut co| {
            co.next();
            std::mem::forget(co); // only a reference
            resume_unwind(Box::new("left"));
        })
    });
    assert_eq!(left, Err("left".to_string()));
    assert_eq!(*dropped.borrow(), ["held", "held"]);
}

#[test]
fn suspend_works_only_in_its_own_coroutine() {
    thread_local!(static SMUGGLED: Cell<*const Yielder<i32, ()>> = Cell::new(std::ptr::null()));
    // What a scoped thread-local variable does in safe code.
    let mut co = Coroutine::new(|y: &Yielder<i32, ()>, ()| {
        SMUGGLED.with(|smuggled| smuggled.set(y));
        y.suspend(1);
    });
    co.next();
    let outside = || unsafe { (*SMUGGLED.with(Cell::get)).suspend(2) };
    assert!(caught(outside).unwrap_err().contains("outside of its coroutine"));
    let mut other = Coroutine::new(move |_: &Yielder<i32, ()>, ()| outside());
    assert!(caught(|| other.next()).unwrap_err().contains("outside of its coroutine"));
    assert_eq!(co.next(), None);
    // An outer coroutine's yielder, borrowed by an inner body.
    let mut outer = Coroutine::new(|y: &Yielder<i32, ()>, ()| {
        scope(|_: &Yielder<(), ()>, ()| y.suspend(3), |mut inner| inner.next());
    });
    assert!(caught(|| outer.next()).unwrap_err().contains("outside of its coroutine"));
}

#[test]
fn a_forgotten_coroutine_keeps_its_stack() {
    let shared = Rc::new(Cell::new(1));
    let seen = shared.clone();
    let mut co = Coroutine::new(move |y: &Yielder<Rc<Cell<i32>>, ()>, ()| y.suspend(seen.clone()));
    let yielded = co.next().unwrap();
    std::mem::forget(co);
    yielded.set(5);
    assert_eq!((shared.get(), Rc::strong_count(&shared)), (5, 3));
}

#[test]
fn threads_have_their_own() {
    let sums: Vec<u64> = (0..4u64)
        .map(|seed| thread::spawn(move || {
            let mut all: Vec<Coroutine<u64>> =
                (0..50).map(|i| Coroutine::new(move |y, ()| (0..).for_each(|n| y.suspend(seed + i + n)))).collect();
            (0..100).map(|_| all.iter_mut().map(|co| co.next().unwrap()).sum::<u64>()).sum()
        }))
        .collect::<Vec<_>>()
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    let expected = |seed: u64| (0..100).map(|n| (0..50).map(|i| seed + i + n).sum::<u64>()).sum::<u64>();
    assert_eq!(sums, (0..4).map(expected).collect::<Vec<_>>());
}

#[test]
fn threads_may_be_joined_inside() {
    let mut co = Coroutine::new(|y: &Yielder<i32, ()>, ()| {
        let mut numbers = vec![1, 2, 3];
        thread::scope(|s| {
            s.spawn(|| numbers.push(4));
            y.suspend(0);
        });
        y.suspend(numbers.iter().sum());
        let cancelled = Cell::new(0);
        thread::scope(|s| {
            s.spawn(|| numbers.push(5));
            y.suspend(0); // cancelled here: the scope joins its thread
            cancelled.set(1);
        });
    });
    assert_eq!((co.next(), co.next(), co.next()), (Some(0), Some(10), Some(0)));
    drop(co);
}

#[test]
fn what_must_not_be_sent_is_not() {
    // True if T has the trait: the first method is preferred where its bound holds.
    struct Probe<T>(std::marker::PhantomData<T>);
    trait No {
        fn is_send(&self) -> bool { false }
        fn is_sync(&self) -> bool { false }
    }
    impl<T> No for &Probe<T> {}
    trait Send_ { fn is_send(&self) -> bool { true } }
    impl<T: Send> Send_ for Probe<T> {}
    trait Sync_ { fn is_sync(&self) -> bool { true } }
    impl<T: Sync> Sync_ for Probe<T> {}
    let yes = Probe::<i32>(std::marker::PhantomData);
    assert!(yes.is_send() && yes.is_sync());
    let co = Probe::<Coroutine<i32>>(std::marker::PhantomData);
    assert!(!(&co).is_send() && !(&co).is_sync());
    let y = Probe::<Yielder<i32, i32>>(std::marker::PhantomData);
    assert!(!(&y).is_send() && !(&y).is_sync());
    let scoped = Probe::<acorn::Scoped<'static, i32>>(std::marker::PhantomData);
    assert!(!(&scoped).is_send() && !(&scoped).is_sync());
}

#[test]
fn destructors_that_panic_leak_no_coroutine() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            resume_unwind(Box::new("in drop"));
        }
    }
    let unstarted = Coroutine::<(), ()>::new({
        let panics = Panics;
        move |_, ()| drop(panics)
    });
    assert_eq!(caught(|| drop(unstarted)), Err("in drop".to_string()));
    let mut result = Coroutine::new(|y: &Yielder<(), ()>, ()| {
        let _ = catch_unwind(AssertUnwindSafe(|| y.suspend(())));
        Panics
    });
    result.resume(());
    assert_eq!(caught(|| drop(result)), Err("in drop".to_string()));
}

#[test]
fn zero_sized_and_large_values() {
    let mut co = Coroutine::new(|y: &Yielder<(), ()>, ()| y.suspend(()));
    assert_eq!((co.resume(()), co.resume(())), (Step::Yielded(()), Step::Returned(())));
    let mut large = Coroutine::new(|y, first: [u64; 1000]| y.suspend(first.map(|i| i + 1))[999]);
    assert_eq!(large.resume([1; 1000]), Step::Yielded([2; 1000]));
    assert_eq!(large.resume([7; 1000]), Step::Returned(7));
    #[repr(align(128))]
    struct Aligned(u8);
    let mut aligned = Coroutine::new(|y: &Yielder<Aligned, Aligned>, first: Aligned| {
        assert_eq!(&first as *const _ as usize % 128, 0);
        y.suspend(first);
    });
    assert!(matches!(aligned.resume(Aligned(3)), Step::Yielded(Aligned(3))));
}

#[test]
fn sizes_out_of_bounds_panic() {
    let made = caught(|| Coroutine::<()>::with_stack_size(usize::MAX, |_, ()| ()));
    assert!(made.is_err());
    let mut co = Coroutine::<i32>::with_stack_size(16 << 20, |y, ()| {
        let large = [1u8; 12 << 20];
        y.suspend(large.iter().map(|&b| b as i32).sum());
    });
    assert_eq!(co.next(), Some(12 << 20));
}

/// Runs a test of this program again, as a child, and returns whether it passed and what it printed.
fn child(test: &str) -> (bool, String) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"])
        .output()
        .unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
#[ignore = "dies"]
fn dies_of_overflow() {
    #[allow(unconditional_recursion)]
    #[inline(never)]
    fn recurse(depth: u64) -> u64 {
        let frame = std::hint::black_box([depth; 3000]);
        recurse(depth + 1) + frame[depth as usize % 3000]
    }
    Coroutine::<u64>::new(|y, ()| y.suspend(recurse(0))).next();
}

/// Suspends when it is dropped.
struct Suspends<'a>(&'a Yielder<(), ()>);
impl Drop for Suspends<'_> {
    fn drop(&mut self) {
        self.0.suspend(());
    }
}

#[test]
#[ignore = "dies"]
fn dies_of_a_suspending_destructor() {
    let mut co = Coroutine::new(|y: &Yielder<(), ()>, ()| {
        let _suspends = Suspends(y);
        y.suspend(());
    });
    co.next();
}

#[test]
#[ignore = "dies"]
fn dies_of_a_destructor_that_suspends_in_a_panic() {
    let mut co = Coroutine::new(|y: &Yielder<(), ()>, ()| {
        let _suspends = Suspends(y);
        resume_unwind(Box::new("out"));
    });
    co.next();
}

#[test]
#[ignore = "dies"]
fn dies_of_a_swallowed_cancellation() {
    let mut co = Coroutine::new(|y: &Yielder<(), ()>, ()| loop {
        let _ = catch_unwind(AssertUnwindSafe(|| y.suspend(())));
    });
    co.next();
}

#[test]
fn mistakes_end_the_process_with_a_message() {
    for (test, message) in [
        ("dies_of_overflow", "its private stack of 262144 bytes"),
        ("dies_of_a_suspending_destructor", "a destructor suspends its coroutine"),
        ("dies_of_a_destructor_that_suspends_in_a_panic", "a destructor suspends its coroutine"),
        ("dies_of_a_swallowed_cancellation", "catches its cancellations"),
    ] {
        let (passed, printed) = child(test);
        assert!(!passed && printed.contains(message), "{test}: {passed}: {printed}");
    }
}

thread_local! {
    static LATE: RefCell<Vec<Coroutine<i32>>> = RefCell::new(Vec::new());
}

/// Whichever goes first at the thread's end, the variable or the crate's own.
#[test]
fn coroutines_may_be_in_thread_local_variables() {
    for early in [true, false] {
        let counted = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let here = counted.clone();
        thread::spawn(move || {
            if early {
                LATE.with(|_| ());
            }
            struct Counts(std::sync::Arc<std::sync::atomic::AtomicUsize>);
            impl Drop for Counts {
                fn drop(&mut self) {
                    self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            }
            let mut co = Coroutine::new(move |y, ()| {
                let _counts = Counts(here);
                (0..).for_each(|i| y.suspend(i));
            });
            co.next();
            LATE.with(|late| late.borrow_mut().push(co));
        })
        .join()
        .unwrap();
        assert!(counted.load(std::sync::atomic::Ordering::Relaxed) <= 1); // the order decides whether it is leaked
    }
}
