//! bench/tasks.h on corosensei: C functions run in coroutines, which are resumed in turn until all have returned.
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::ffi::c_void;
use std::ptr::{addr_of, null};

type Body = extern "C" fn(*mut c_void) -> *mut c_void;

static mut RUNNING: *const Yielder<(), ()> = null();

/// # Safety
/// As bench/tasks.h says; one thread.
#[no_mangle]
pub unsafe extern "C" fn corosensei_run(body: Body, arguments: *mut c_void, size: usize, number: usize) {
    let mut tasks: Vec<_> = (0..number)
        .map(|i| {
            let argument = arguments.byte_add(i * size);
            Coroutine::new(move |yielder: &Yielder<(), ()>, ()| {
                RUNNING = yielder;
                body(argument);
            })
        })
        .collect();
    while !tasks.is_empty() {
        tasks.retain_mut(|co| matches!(co.resume(()), CoroutineResult::Yield(())));
    }
}

/// # Safety
/// In a task.
#[no_mangle]
pub unsafe extern "C" fn corosensei_yield() {
    let own = addr_of!(RUNNING).read();
    (*own).suspend(());
    RUNNING = own;
}
