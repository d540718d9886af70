//! corosensei in the switch matrix and in cases of bench/native.h. The command line, the output and the loops are those
//! of bench/matrix.h. Coroutines run on corosensei's own stacks (mmap, guard page). Very many coroutines would exceed
//! the kernel's limit of mappings, so they run on stacks without a guard page.
use corosensei::stack::{DefaultStack, Stack, StackPointer, MIN_STACK_SIZE};
use corosensei::{Coroutine, CoroutineResult, ScopedCoroutine, Yielder};
use std::arch::asm;
use std::env;
use std::process::exit;

#[path = "../../sending.rs"]
mod sending;
mod write_fully;
use write_fully::run as senders;

const STACK: usize = 64 << 10;
const SMALL_STACK: usize = 4096;
const MANY: usize = 10000;

/// A stack like those of bench/stack.h.
struct PlainStack(usize);

static mut STACKS_MADE: usize = 0;

impl PlainStack {
    fn new(size: usize) -> Self {
        extern "C" {
            fn mmap(at: *mut u8, size: usize, protection: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
        }
        const READ_WRITE: i32 = 3;
        const PRIVATE_ANONYMOUS_NORESERVE: i32 = 0x4022;
        const PAGE: usize = 4096;
        let below = size.next_multiple_of(PAGE);
        let map_size = below + PAGE;
        let map = unsafe { mmap(std::ptr::null_mut(), map_size, READ_WRITE, PRIVATE_ANONYMOUS_NORESERVE, -1, 0) };
        if map as isize == -1 {
            eprintln!("no mapping of {map_size} bytes");
            exit(1);
        }
        let colour = unsafe {
            STACKS_MADE += 1;
            16 + STACKS_MADE * 37 % 43
        };
        PlainStack(map as usize + below + colour * 64)
    }
}

unsafe impl Stack for PlainStack {
    fn base(&self) -> StackPointer {
        StackPointer::new(self.0).unwrap()
    }
    fn limit(&self) -> StackPointer {
        StackPointer::new(self.0 - SMALL_STACK).unwrap()
    }
}

fn hide(mut value: usize) -> usize {
    unsafe { asm!("/* {0} */", inout(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Moves the code that follows away from its cache line's start.
#[inline(always)]
fn place<const PAD: usize>() {
    unsafe { asm!("jmp 2f", ".skip {pad}, 0x90", "2:", pad = const PAD, options(nomem, nostack, preserves_flags)) };
}

#[inline(never)]
fn run_one<const PAD: usize, S: Stack>(co: &mut Coroutine<(), (), (), S>, n: usize) {
    place::<PAD>();
    for _ in 0..n {
        co.resume(());
    }
}

#[inline(never)]
fn run_many<const PAD: usize, S: Stack>(order: &[*mut Coroutine<(), (), (), S>], n: usize) {
    place::<PAD>();
    for _ in 0..n {
        for co in order {
            unsafe { (**co).resume(()) };
        }
    }
}

#[inline(never)]
fn run_value<const PAD: usize>(co: &mut Coroutine<usize, usize, (), DefaultStack>, n: usize) {
    place::<PAD>();
    let mut sum = 0usize;
    for i in 0..n {
        if let CoroutineResult::Yield(reply) = co.resume(i) {
            sum = sum.wrapping_add(reply);
        }
    }
    hide(sum);
}

#[inline(never)]
fn flat_body<const PAD: usize>(yielder: &Yielder<(), ()>) {
    place::<PAD>();
    loop {
        yielder.suspend(());
    }
}

#[inline(never)]
fn descend(yielder: &Yielder<(), ()>, depth: usize, mut x: usize) -> usize {
    let a = hide(x.wrapping_add(1));
    let b = hide(x ^ depth);
    let c = hide(a.wrapping_add(b));
    let d = hide(x.wrapping_sub(c));
    if depth > 1 {
        x = descend(yielder, depth - 1, c);
    } else {
        yielder.suspend(());
    }
    x.wrapping_add(a ^ b).wrapping_add(c ^ d)
}

#[inline(never)]
fn nested_body<const PAD: usize>(yielder: &Yielder<(), ()>, depth: usize) {
    place::<PAD>();
    let mut x = 0;
    loop {
        x = descend(yielder, hide(depth), x);
    }
}

#[inline(never)]
fn value_body<const PAD: usize>(yielder: &Yielder<usize, usize>, first: usize) {
    place::<PAD>();
    let mut sum = first;
    loop {
        sum = sum.wrapping_add(yielder.suspend(sum));
    }
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545f4914f6cdd1d)
}

/// Nanoseconds of processor time of this thread.
fn thread_time() -> f64 {
    extern "C" {
        fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
    }
    const THREAD_CPUTIME: i32 = 3;
    let mut time = [0; 2];
    unsafe { clock_gettime(THREAD_CPUTIME, &mut time) };
    time[0] as f64 * 1e9 + time[1] as f64
}

/// Runs rounds for about `ns` nanoseconds and prints a sample; a round has `trips` round trips. For 0 ns: `rounds`
/// rounds, and prints the number of round trips.
fn measure(rounds: &mut usize, ns: f64, trips: usize, mut run: impl FnMut(usize)) {
    if ns == 0.0 {
        run(*rounds);
        return println!("{}", *rounds * trips);
    }
    let mut time = |n: usize| {
        let start = thread_time();
        run(n);
        thread_time() - start
    };
    let mut n = 1;
    while *rounds == 0 {
        let taken = time(n);
        if taken > ns / 8.0 {
            *rounds = (ns / taken * n as f64) as usize + 1;
        }
        n *= 2;
    }
    time(*rounds / 50 + 1);
    println!("{:.4}", time(*rounds) / (*rounds * trips) as f64);
}

struct Options {
    n: usize,
    random: bool,
    samples: usize,
    ns: f64,
    seed: usize,
}

/// An order of `n` coroutines, like bench/matrix.h.
fn order<T>(n: usize, shuffled: bool, state: &mut u64, mut make: impl FnMut() -> *mut T) -> Vec<*mut T> {
    let made: Vec<*mut T> = (0..n).map(|_| make()).collect();
    let rounds = (if shuffled { 8192 } else { 1024 }) / n + 1;
    let mut all = Vec::with_capacity(n * rounds);
    for _ in 0..rounds {
        let mut round = made.clone();
        if shuffled {
            for i in (1..n).rev() {
                round.swap(i, (random(state) % (i as u64 + 1)) as usize);
            }
        }
        all.extend(round);
    }
    all
}

fn flat_new<const PAD: usize, S: Stack + 'static>(stack: S) -> *mut Coroutine<(), (), (), S> {
    let mut co = Box::new(Coroutine::with_stack(stack, |yielder: &Yielder<(), ()>, _| {
        yielder.suspend(());
        flat_body::<PAD>(yielder)
    }));
    co.resume(());
    Box::into_raw(co)
}

fn default_stack() -> DefaultStack {
    DefaultStack::new(STACK.max(MIN_STACK_SIZE)).unwrap_or_else(|error| {
        eprintln!("no stack: {error}");
        exit(1);
    })
}

fn flat<const PAD: usize>(o: &Options, rounds: &mut usize) {
    let mut state = o.seed as u64 * 2 + 1;
    if o.n == 1 {
        let co = unsafe { &mut *flat_new::<PAD, _>(default_stack()) };
        measure(rounds, o.ns, 1, |n| run_one::<PAD, _>(co, n));
    } else if o.n < MANY {
        let order = order(o.n, o.random, &mut state, || flat_new::<PAD, _>(default_stack()));
        measure(rounds, o.ns, order.len(), |n| run_many::<PAD, _>(&order, n));
    } else {
        let order = order(o.n, o.random, &mut state, || flat_new::<PAD, _>(PlainStack::new(SMALL_STACK)));
        for _ in 0..o.samples {
            measure(rounds, o.ns, order.len(), |n| run_many::<PAD, _>(&order, n));
        }
    }
}

fn nested<const PAD: usize>(o: &Options, rounds: &mut usize) {
    let depth = o.n;
    let body = move |yielder: &Yielder<(), ()>, _| nested_body::<PAD>(yielder, depth);
    let mut co = Coroutine::with_stack(default_stack(), body);
    co.resume(());
    measure(rounds, o.ns, 1, |n| run_one::<PAD, _>(&mut co, n));
    std::mem::forget(co);
}

fn value<const PAD: usize>(o: &Options, rounds: &mut usize) {
    let body = |yielder: &Yielder<usize, usize>, first| value_body::<PAD>(yielder, first);
    let mut co = Coroutine::with_stack(default_stack(), body);
    co.resume(0);
    measure(rounds, o.ns, 1, |n| run_value::<PAD>(&mut co, n));
    std::mem::forget(co);
}

/// A whole life on a reused stack, like the crate's own benchmark `coroutine_call`.
#[inline(never)]
fn run_call<const PAD: usize>(stack: &mut DefaultStack, n: usize) {
    place::<PAD>();
    let mut sum = 0usize;
    for i in 0..n {
        let co = ScopedCoroutine::<usize, (), usize, _>::with_stack(&mut *stack, |_yielder, input| input);
        if let CoroutineResult::Return(result) = co.scope(|mut co| co.resume(hide(i))) {
            sum = sum.wrapping_add(result);
        }
    }
    assert_eq!(sum, n * n.wrapping_sub(1) / 2, "other results came back");
}

fn call<const PAD: usize>(o: &Options, rounds: &mut usize) {
    let mut stack = default_stack();
    measure(rounds, o.ns, 1, |n| run_call::<PAD>(&mut stack, n));
}

/// The sum of a sequence, as in bench/elements.h.
fn sequence<const PAD: usize>(o: &Options, rounds: &mut usize) {
    let n = o.n;
    measure(rounds, o.ns, n, |times| {
        for _ in 0..times {
            let sum = run_elements::<PAD>(move |yielder| {
                place::<PAD>();
                for i in (1..=n).rev() {
                    yielder.suspend(i);
                }
            });
            assert_eq!(sum, n * (n + 1) / 2, "other elements came");
        }
    });
}

#[inline(never)]
fn move_discs(yielder: &Yielder<(), usize>, disc: usize, from: u8, to: u8, spare: u8) {
    if disc == 0 {
        return;
    }
    move_discs(yielder, disc - 1, from, spare, to);
    yielder.suspend(disc + ((from as usize) << 8) + ((to as usize) << 16));
    move_discs(yielder, disc - 1, spare, to, from);
}

/// The Tower of Hanoi, as in bench/elements.h.
fn hanoi<const PAD: usize>(o: &Options, rounds: &mut usize) {
    let discs = (o.n + 1).ilog2() as usize;
    assert_eq!(o.n, (1 << discs) - 1, "no tower has this number of moves");
    measure(rounds, o.ns, o.n, |times| {
        for _ in 0..times {
            hide(run_elements::<PAD>(move |yielder| move_discs(yielder, discs, b'a', b'b', b'c')));
        }
    });
}

#[inline(never)]
fn run_elements<const PAD: usize>(body: impl FnOnce(&Yielder<(), usize>) + 'static) -> usize {
    place::<PAD>();
    let mut co = Coroutine::with_stack(default_stack(), move |yielder: &Yielder<(), usize>, ()| body(yielder));
    let mut sum = 0usize;
    while let CoroutineResult::Yield(value) = co.resume(()) {
        sum = sum.wrapping_add(value);
    }
    sum
}

/// As in bench/matrix.h.
fn check() {
    let body = |yielder: &Yielder<usize, usize>, first| value_body::<0>(yielder, first);
    let mut co = Coroutine::with_stack(default_stack(), body);
    if co.resume(3) != CoroutineResult::Yield(3) || co.resume(4) != CoroutineResult::Yield(7) {
        eprintln!("the coroutine gave back other values than it should");
        exit(1);
    }
    std::mem::forget(co);
}

fn main() {
    let args: Vec<String> = env::args().collect();
    if args.len() != 7 {
        eprintln!(
            "usage: {} flat|nested|value|call|sequence|hanoi|write_fully[_mixed] N rr|random|- \
             SAMPLES MILLISECONDS SEED",
            args[0]
        );
        exit(2);
    }
    let number = |i: usize| args[i].parse::<usize>().expect("a number");
    let samples = number(4);
    // Without samples, for counting instructions: so many rounds instead of milliseconds.
    let (ns, mut rounds) = if samples == 0 { (0.0, number(5)) } else { (number(5) as f64 * 1e6, 0) };
    let o = Options { n: number(2), random: args[3] == "random", samples: samples.max(1), ns, seed: number(6) };
    let run: [fn(&Options, &mut usize); 4] = match args[1].as_str() {
        "nested" => [nested::<0>, nested::<16>, nested::<32>, nested::<48>],
        "value" => [value::<0>, value::<16>, value::<32>, value::<48>],
        "sequence" => [sequence::<0>, sequence::<16>, sequence::<32>, sequence::<48>],
        "hanoi" => [hanoi::<0>, hanoi::<16>, hanoi::<32>, hanoi::<48>],
        "write_fully" => [senders::<0, false>, senders::<16, false>, senders::<32, false>, senders::<48, false>],
        "write_fully_mixed" => [senders::<0, true>, senders::<16, true>, senders::<32, true>, senders::<48, true>],
        "call" => [call::<0>, call::<16>, call::<32>, call::<48>],
        _ => [flat::<0>, flat::<16>, flat::<32>, flat::<48>],
    };
    unsafe { STACKS_MADE = o.seed };
    check();
    let one_call = args[1] == "flat" && o.n >= MANY; // one call takes all the samples
    for sample in 0..if one_call { 1 } else { o.samples } {
        run[(o.seed + sample) % 4](&o, &mut rounds);
    }
}
