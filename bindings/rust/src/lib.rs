//! Stackful coroutines on the C library [Acorn](https://github.com/): a function with a stack of its own, which can
//! suspend itself at any depth of calls.
//!
//! ```
//! use acorn::{Coroutine, Step};
//!
//! let mut sum = Coroutine::new(|y, first: i32| {
//!     let mut sum = first;
//!     while sum < 10 {
//!         sum += y.suspend(sum); // gives `sum` to the resumer, gets the value of the next resume
//!     }
//!     "enough"
//! });
//! assert_eq!(sum.resume(3), Step::Yielded(3));
//! assert_eq!(sum.resume(4), Step::Yielded(7));
//! assert_eq!(sum.resume(5), Step::Returned("enough"));
//!
//! let squares = Coroutine::new(|y, ()| (1..).for_each(|i| y.suspend(i * i)));
//! assert_eq!(squares.take(3).collect::<Vec<i32>>(), [1, 4, 9]);
//! ```
//!
//! A body that borrows is for [`scope`].
//!
//! **Panics.** A panic that leaves the body ends the coroutine and continues in [`Coroutine::resume`].
//!
//! **Drop.** Dropping a suspended coroutine unwinds its stack, so that what lives there is dropped: `suspend` panics
//! with [`Cancelled`] as its payload, without calling the panic hook. A `catch_unwind` around it may stop that; then
//! each further `suspend` panics again, until the body returns. A body that has caught 1000 of them aborts the process.
//! A destructor that suspends while its coroutine unwinds aborts the process, for a cancellation as for a panic.
//!
//! **`panic = "abort"`.** No stack can be unwound. A dropped suspended coroutine is leaked, with its stack; [`scope`]
//! aborts the process.
//!
//! **Threads.** Coroutines stay on their thread: neither `Send` nor `Sync`, because what lives on the stack need not
//! be. Other threads may have coroutines of their own.
//!
//! **Overflow.** Below each stack is a guard page. The process dies with a line that names the stack.
//!
//! **Known hole.** Safe code can misuse thread-local variables, as with other stackful coroutines. A body that is
//! suspended inside `LocalKey::with` holds a reference that the standard library thinks is gone when the thread ends.
//! So do not resume or drop coroutines in destructors of thread-local variables. A coroutine that is dropped there is
//! leaked instead of unwound if this crate's own thread-local variable is gone by then; the order decides. For the same
//! reason a variable that restores itself by nesting (`scoped-tls`) must not be set across a `suspend`.
#![warn(missing_docs)]

use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_void, CStr};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr::{addr_of, null, null_mut, NonNull};
use std::thread;

mod ffi {
    use std::ffi::c_void;
    use std::os::raw::{c_char, c_int, c_uint};

    /// aco_options_t
    #[repr(C)]
    pub struct Options {
        pub stack_size: usize,
        pub stack: *mut c_void,
        pub save_size: usize,
        pub name: *const c_char,
        pub flags: c_uint,
        pub reserved0: c_uint,
        pub pool: *mut c_void,
        pub stack_memory: *mut c_void,
        pub reserved: [*mut c_void; 2],
    }

    extern "C" {
        pub static aco_error_mark: c_char;
        pub fn aco_new(f: extern "C" fn(*mut c_void) -> *mut c_void, arg: *mut c_void, options: *const Options)
            -> *mut c_void;
        pub fn aco_destroy(co: *mut c_void);
        pub fn aco_send(co: *mut c_void, value: *mut c_void) -> *mut c_void;
        pub fn aco_yield_value(value: *mut c_void) -> *mut c_void;
        pub fn aco_get_co() -> *mut c_void;
        pub fn aco_error_message() -> *const c_char;
        pub fn aco_explain_overflow() -> c_int;
    }
}

/// What a coroutine did when it was resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<Yield, Return> {
    /// It is suspended.
    Yielded(Yield),
    /// It has ended.
    Returned(Return),
}

/// The payload of the panic that unwinds a dropped coroutine.
#[derive(Debug)]
pub struct Cancelled;

#[derive(Clone, Copy, PartialEq)]
enum Status {
    New,
    Suspended,
    Done,
}

/// What both sides use. It is followed by the body (`Frame`). Both sides have raw pointers to it, and one side runs.
struct Shared<Yield, Resume, Return> {
    co: Cell<*mut c_void>,
    /// The value of the current resume, on the resumer's stack. Null: the coroutine is cancelled.
    passed: Cell<*mut Resume>,
    resumer_unwinds: Cell<bool>,
    cancellations: Cell<u32>,
    outcome: Cell<Option<thread::Result<Return>>>,
    drop_body: unsafe fn(NonNull<Self>),
    free: unsafe fn(NonNull<Self>),
    yields: PhantomData<Cell<Yield>>,
}

#[repr(C)] // Shared first
struct Frame<Yield, Resume, Return, Body> {
    shared: Shared<Yield, Resume, Return>,
    body: UnsafeCell<ManuallyDrop<Body>>,
}

#[cold]
fn resumed_after_end() -> ! {
    panic!("acorn: resumed a coroutine that has ended")
}

#[cold]
fn die(why: &str) -> ! {
    eprintln!("acorn: {why}");
    std::process::abort()
}

#[cold]
fn not_running() -> ! {
    panic!("acorn: suspend() outside of its coroutine")
}

fn error() -> String {
    unsafe { CStr::from_ptr(ffi::aco_error_message()) }.to_string_lossy().into_owned()
}

/// Exists in each thread until it ends.
struct Thread;
impl Drop for Thread {
    fn drop(&mut self) {}
}
thread_local! {
    static THREAD: Thread = {
        unsafe { ffi::aco_explain_overflow() };
        Thread
    };
}

/// A coroutine. It gets a `Resume` at each [`resume`](Self::resume), gives a `Yield` at each suspension, and a `Return`
/// at its end. One that takes and returns nothing is an iterator.
pub struct Coroutine<Yield, Resume = (), Return = ()> {
    shared: NonNull<Shared<Yield, Resume, Return>>,
    status: Status,
    /// Neither Send nor Sync; invariant.
    not_send: PhantomData<*mut (Yield, Resume, Return)>,
}

impl<Yield, Resume, Return> Coroutine<Yield, Resume, Return> {
    /// Makes a coroutine with a stack of Acorn's default size. `body` runs at the first resume, with its value.
    ///
    /// Everything is `'static`, because a coroutine can be leaked while its body lends what it has borrowed to other
    /// threads ([`std::thread::scope`]). [`scope`] has no such bound.
    ///
    /// ```compile_fail
    /// let local = 1;
    /// acorn::Coroutine::new(|y, ()| y.suspend(&local));
    /// ```
    ///
    /// # Panics
    /// Without memory.
    pub fn new<Body>(body: Body) -> Self
    where
        Body: FnOnce(&Yielder<Yield, Resume>, Resume) -> Return + 'static,
        Yield: 'static,
        Resume: 'static,
        Return: 'static,
    {
        unsafe { Self::new_borrowing(0, body) }
    }

    /// The same with a stack of at least this many bytes; at least 4 KiB. A panic needs some 16 KiB, and more with a
    /// backtrace.
    ///
    /// # Panics
    /// Without memory, and for sizes out of bounds.
    pub fn with_stack_size<Body>(stack_size: usize, body: Body) -> Self
    where
        Body: FnOnce(&Yielder<Yield, Resume>, Resume) -> Return + 'static,
        Yield: 'static,
        Resume: 'static,
        Return: 'static,
    {
        unsafe { Self::new_borrowing(stack_size, body) }
    }

    /// # Safety
    /// It is dropped, not leaked, while everything is alive that the body and the values borrow.
    unsafe fn new_borrowing<Body>(stack_size: usize, body: Body) -> Self
    where
        Body: FnOnce(&Yielder<Yield, Resume>, Resume) -> Return,
    {
        let _ = THREAD.try_with(|_| ());
        let frame = Box::new(Frame {
            shared: Shared {
                co: Cell::new(null_mut()),
                passed: Cell::new(null_mut()),
                resumer_unwinds: Cell::new(false),
                cancellations: Cell::new(0),
                outcome: Cell::new(None),
                drop_body: drop_body::<Yield, Resume, Return, Body>,
                free: free::<Yield, Resume, Return, Body>,
                yields: PhantomData,
            },
            body: UnsafeCell::new(ManuallyDrop::new(body)),
        });
        let frame = NonNull::from(Box::leak(frame));
        let coroutine = Coroutine { shared: frame.cast(), status: Status::New, not_send: PhantomData };
        let options = ffi::Options {
            stack_size,
            stack: null_mut(),
            save_size: 0,
            name: null(),
            flags: 0,
            reserved0: 0,
            pool: null_mut(),
            stack_memory: null_mut(),
            reserved: [null_mut(); 2],
        };
        let co = ffi::aco_new(enter::<Yield, Resume, Return, Body>, frame.as_ptr().cast(), &options);
        if co.is_null() {
            panic!("{}", error()); // drops `coroutine`
        }
        coroutine.shared().co.set(co);
        coroutine
    }

    fn shared(&self) -> &Shared<Yield, Resume, Return> {
        unsafe { self.shared.as_ref() }
    }

    /// Runs the coroutine until it suspends itself or ends.
    ///
    /// # Panics
    /// If the body panics, with its payload; if the coroutine has ended before.
    #[inline(always)] // a return would be predicted wrongly: the other stack's call was the last one
    pub fn resume(&mut self, value: Resume) -> Step<Yield, Return> {
        if self.status == Status::Done {
            resumed_after_end();
        }
        let mut value = ManuallyDrop::new(value);
        let yielded = unsafe { self.switch(&mut *value) };
        if yielded.is_null() {
            return Step::Returned(self.ended());
        }
        Step::Yielded(unsafe { yielded.read() })
    }

    /// Returns where the yielded value is; null: the coroutine has ended.
    ///
    /// # Safety
    /// It is not done. `passed` is to be moved from; null: the coroutine is to be cancelled.
    #[inline(always)]
    unsafe fn switch(&mut self, passed: *mut Resume) -> *mut Yield {
        let shared = self.shared.as_ref();
        shared.passed.set(passed);
        shared.resumer_unwinds.set(thread::panicking());
        self.status = Status::Suspended;
        let yielded = ffi::aco_send(shared.co.get(), null_mut());
        if yielded.is_null() {
            self.status = Status::Done;
        } else if yielded as *const _ == addr_of!(ffi::aco_error_mark) {
            die(&error());
        }
        yielded.cast()
    }

    #[cold]
    fn ended(&mut self) -> Return {
        match self.shared().outcome.take() {
            Some(Ok(result)) => result,
            Some(Err(payload)) => resume_unwind(payload),
            None => unreachable!(),
        }
    }

    /// Whether it has ended: returned, panicked, or was cancelled.
    pub fn is_done(&self) -> bool {
        self.status == Status::Done
    }

    /// Ends the coroutine as dropping it does. What the body returns is dropped.
    ///
    /// # Panics
    /// If the body panics with another payload than [`Cancelled`].
    pub fn cancel(&mut self) {
        match self.status {
            Status::New => {
                self.status = Status::Done;
                unsafe { (self.shared().drop_body)(self.shared) };
            }
            Status::Suspended => {
                if cfg!(panic = "abort") {
                    die("a suspended coroutine cannot be cancelled: panic = \"abort\"");
                }
                unsafe { self.switch(null_mut()) };
                match self.shared().outcome.take() {
                    Some(Err(payload)) if !payload.is::<Cancelled>() => resume_unwind(payload),
                    outcome => drop(outcome),
                }
            }
            Status::Done => (),
        }
    }
}

impl<Yield, Resume, Return> Drop for Coroutine<Yield, Resume, Return> {
    fn drop(&mut self) {
        /// Frees it after what may panic.
        struct Memory<Yield, Resume, Return>(NonNull<Shared<Yield, Resume, Return>>);
        impl<Yield, Resume, Return> Drop for Memory<Yield, Resume, Return> {
            fn drop(&mut self) {
                unsafe {
                    let shared = self.0.as_ref();
                    ffi::aco_destroy(shared.co.get());
                    (shared.free)(self.0);
                }
            }
        }
        if self.status == Status::Suspended && (cfg!(panic = "abort") || THREAD.try_with(|_| ()).is_err()) {
            return;
        }
        let _memory = Memory(self.shared);
        self.cancel();
    }
}

unsafe fn drop_body<Yield, Resume, Return, Body>(shared: NonNull<Shared<Yield, Resume, Return>>) {
    let frame = shared.cast::<Frame<Yield, Resume, Return, Body>>();
    ManuallyDrop::drop(&mut *frame.as_ref().body.get());
}

unsafe fn free<Yield, Resume, Return, Body>(shared: NonNull<Shared<Yield, Resume, Return>>) {
    drop(Box::from_raw(shared.cast::<Frame<Yield, Resume, Return, Body>>().as_ptr()));
}

/// The first function on the stack. No panic leaves it.
extern "C" fn enter<Yield, Resume, Return, Body>(frame: *mut c_void) -> *mut c_void
where
    Body: FnOnce(&Yielder<Yield, Resume>, Resume) -> Return,
{
    unsafe {
        let frame = &*(frame as *const Frame<Yield, Resume, Return, Body>);
        let shared = &frame.shared;
        let body = ManuallyDrop::take(&mut *frame.body.get());
        let yielder = Yielder {
            co: shared.co.get(),
            passed: &shared.passed,
            resumer_unwinds: &shared.resumer_unwinds,
            cancellations: &shared.cancellations,
            yields: PhantomData,
        };
        let first = shared.passed.get().read();
        shared.outcome.set(Some(catch_unwind(AssertUnwindSafe(|| body(&yielder, first)))));
    }
    null_mut()
}

/// What a body suspends its coroutine with.
pub struct Yielder<Yield, Resume> {
    co: *mut c_void,
    /// Of `Shared`.
    passed: *const Cell<*mut Resume>,
    resumer_unwinds: *const Cell<bool>,
    cancellations: *const Cell<u32>,
    yields: PhantomData<*mut Yield>,
}

impl<Yield, Resume> Yielder<Yield, Resume> {
    /// Suspends the coroutine, at any depth of calls, and gives `value` to its resumer. Returns the value of the next
    /// resume.
    ///
    /// # Panics
    /// With [`Cancelled`] if the coroutine is dropped; if another coroutine is running, or none.
    #[inline(always)]
    pub fn suspend(&self, value: Yield) -> Resume {
        unsafe {
            if ffi::aco_get_co() != self.co {
                not_running();
            }
            if thread::panicking() && !(*self.resumer_unwinds).get() {
                die("a destructor suspends its coroutine, which unwinds");
            }
            if (*self.cancellations).get() != 0 {
                drop(value);
                self.cancelled();
            }
            let mut value = ManuallyDrop::new(value);
            ffi::aco_yield_value((&mut *value as *mut Yield).cast());
            let passed = (*self.passed).get();
            if passed.is_null() {
                self.cancelled();
            }
            passed.read()
        }
    }

    #[cold]
    fn cancelled(&self) -> ! {
        let cancellations = unsafe { &*self.cancellations };
        cancellations.set(cancellations.get() + 1);
        if cancellations.get() > 1000 {
            die("a coroutine catches its cancellations and goes on");
        }
        resume_unwind(Box::new(Cancelled))
    }
}

impl<Yield> Iterator for Coroutine<Yield> {
    type Item = Yield;
    fn next(&mut self) -> Option<Yield> {
        if self.is_done() {
            return None;
        }
        match self.resume(()) {
            Step::Yielded(value) => Some(value),
            Step::Returned(()) => None,
        }
    }
}
impl<Yield> std::iter::FusedIterator for Coroutine<Yield> {}

/// A coroutine whose body and values may borrow: see [`scope`].
pub struct Scoped<'scope, Yield, Resume = (), Return = ()>(&'scope mut Coroutine<Yield, Resume, Return>);

/// Makes a coroutine for the time of a call. `body` may borrow, unlike that of [`Coroutine::new`], because the
/// coroutine has ended or is cancelled when the call returns.
///
/// ```
/// let words = vec!["a", "bc"];
/// let lengths = |y: &acorn::Yielder<usize, ()>, ()| words.iter().for_each(|word| y.suspend(word.len()));
/// assert_eq!(acorn::scope(lengths, |co| co.sum::<usize>()), 3);
/// ```
///
/// # Panics
/// As [`Coroutine::new`]; if `run` panics; if the body panics while it is cancelled.
pub fn scope<Yield, Resume, Return, Result>(
    body: impl FnOnce(&Yielder<Yield, Resume>, Resume) -> Return,
    run: impl FnOnce(Scoped<'_, Yield, Resume, Return>) -> Result,
) -> Result {
    /// Never leaks it.
    struct End<Yield, Resume, Return>(Coroutine<Yield, Resume, Return>);
    impl<Yield, Resume, Return> Drop for End<Yield, Resume, Return> {
        fn drop(&mut self) {
            self.0.cancel();
        }
    }
    let mut coroutine = End(unsafe { Coroutine::new_borrowing(0, body) });
    run(Scoped(&mut coroutine.0))
}

impl<Yield, Resume, Return> Scoped<'_, Yield, Resume, Return> {
    /// As [`Coroutine::resume`].
    pub fn resume(&mut self, value: Resume) -> Step<Yield, Return> {
        self.0.resume(value)
    }

    /// As [`Coroutine::is_done`].
    pub fn is_done(&self) -> bool {
        self.0.is_done()
    }
}

impl<Yield> Iterator for Scoped<'_, Yield> {
    type Item = Yield;
    fn next(&mut self) -> Option<Yield> {
        self.0.next()
    }
}

#[cfg(test)]
mod tests {
    use super::ffi::Options;
    use std::mem::{align_of, size_of};

    /// ../constants.json is what the C compiler says.
    #[test]
    fn options_are_those_of_the_header() {
        let table = include_str!("../../constants.json");
        let has = |text: String| assert!(table.contains(&text), "constants.json has no {text}");
        has(format!("\"aco_options_t\": {{\"size\": {}, \"align\": {},", size_of::<Options>(), align_of::<Options>()));
        let options = std::mem::MaybeUninit::<Options>::uninit();
        let at = options.as_ptr() as usize;
        let offset = |field: usize| field - at;
        unsafe {
            let options = options.as_ptr();
            has(format!("\"stack_size\": [{}, 8]", offset(std::ptr::addr_of!((*options).stack_size) as usize)));
            has(format!("\"flags\": [{}, 4]", offset(std::ptr::addr_of!((*options).flags) as usize)));
            has(format!("\"stack_memory\": [{}, 8]", offset(std::ptr::addr_of!((*options).stack_memory) as usize)));
        }
    }
}
