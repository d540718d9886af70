// A coroutine in Rust, called by the exported functions: values, panics, cancellation (docs/guide.md, Other languages).
use std::ffi::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
type Co = c_void;
extern "C-unwind" {
    fn aco_new(
        f: extern "C-unwind" fn(*mut c_void) -> *mut c_void,
        arg: *mut c_void,
        options: *const c_void,
    ) -> *mut Co;
    fn aco_send(co: *mut Co, v: *mut c_void) -> *mut c_void;
    fn aco_yield_value(v: *mut c_void) -> *mut c_void;
    fn aco_cancel(co: *mut Co) -> i32;
    fn aco_destroy(co: *mut Co);
    fn aco_state(co: *const Co) -> i32;
}
struct Held(&'static str);
impl Drop for Held { fn drop(&mut self) { println!("dropped: {}", self.0); } }
fn work(n: i32) -> i32 { if n == 2 { panic!("two") } n * 10 }
// Right: nothing that yields stands inside catch_unwind.
extern "C-unwind" fn right(_: *mut c_void) -> *mut c_void {
    let _held = Held("right");
    for n in 1.. {
        let result = catch_unwind(AssertUnwindSafe(|| work(n)));
        unsafe { aco_yield_value(result.unwrap_or(-1) as usize as *mut c_void) };
    }
    std::ptr::null_mut()
}
// Wrong: the cancellation would have to pass through catch_unwind, which stops every unwinding.
extern "C-unwind" fn wrong(_: *mut c_void) -> *mut c_void {
    let _held = Held("wrong");
    let _ = catch_unwind(|| loop { unsafe { aco_yield_value(std::ptr::null_mut()) }; });
    std::ptr::null_mut()
}
fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let entry = if std::env::args().count() > 1 { wrong } else { right };
    unsafe {
        let co = aco_new(entry, std::ptr::null_mut(), std::ptr::null());
        for _ in 0..3 { println!("{}", aco_send(co, std::ptr::null_mut()) as isize as i32); }
        println!("cancel: {}, state {}", aco_cancel(co), aco_state(co));
        aco_destroy(co);
    }
}
