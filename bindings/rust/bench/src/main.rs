//! This crate beside corosensei: `cargo run --release [PAIRS]`. The two take turns; of each case the medians of the
//! processor time of one operation, and the median of the ratios of the pairs.
use std::env;
use std::hint::black_box;

const SWITCHES: usize = 200_000;
const LIVES: usize = 5_000;

extern "C" {
    fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
}

/// Nanoseconds of processor time of this thread.
fn now() -> f64 {
    const THREAD_CPUTIME: i32 = 3;
    let mut time = [0; 2];
    unsafe { clock_gettime(THREAD_CPUTIME, &mut time) };
    time[0] as f64 * 1e9 + time[1] as f64
}

fn per_operation(operations: usize, run: impl FnOnce()) -> f64 {
    let start = now();
    run();
    (now() - start) / operations as f64
}

macro_rules! library {
    ($name:ident, $co:ident, $yielded:path) => {
        mod $name {
            use super::*;
            #[allow(unused_imports)]
            use $co::*;

            /// Resumes and suspensions with a value each way.
            pub fn switch() -> f64 {
                let mut co = Coroutine::new(|y: &Yielder<usize, usize>, first: usize| {
                    let mut sum = first;
                    while sum != usize::MAX {
                        sum = (sum + y.suspend(sum)) / 2;
                    }
                });
                co.resume(1);
                let taken = per_operation(SWITCHES, || {
                    for i in 0..SWITCHES {
                        let _ = black_box(co.resume(i));
                    }
                });
                std::mem::forget(co);
                taken
            }

            fn walk(y: &Yielder<(), usize>, depth: usize) {
                if depth > 0 {
                    walk(y, depth - 1);
                    y.suspend(depth);
                    walk(y, depth - 1);
                }
            }

            /// Elements of a recursive walk.
            pub fn walks() -> f64 {
                const DEPTH: usize = 17;
                per_operation(1 << DEPTH, || {
                    let mut co = Coroutine::new(|y: &Yielder<(), usize>, ()| walk(y, DEPTH));
                    let mut sum = 0;
                    while let $yielded(depth) = co.resume(()) {
                        sum += depth;
                    }
                    black_box(sum);
                })
            }

            /// A coroutine that suspends once and returns.
            pub fn life() -> f64 {
                per_operation(LIVES, || {
                    for i in 0..LIVES {
                        let mut co = Coroutine::new(move |y: &Yielder<(), usize>, ()| y.suspend(i));
                        co.resume(());
                        co.resume(());
                    }
                })
            }

            /// A coroutine that is dropped where it is suspended.
            pub fn cancelled() -> f64 {
                per_operation(LIVES, || {
                    for i in 0..LIVES {
                        let mut co = Coroutine::new(move |y: &Yielder<(), usize>, ()| y.suspend(i));
                        co.resume(());
                    }
                })
            }
        }
    };
}

/// The names and the order of parameters of corosensei.
mod as_corosensei {
    pub use acorn::Coroutine;
    pub type Yielder<Resume, Yield> = acorn::Yielder<Yield, Resume>;
}
library!(acorn_, as_corosensei, acorn::Step::Yielded);
library!(corosensei_, corosensei, CoroutineResult::Yield);

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let pairs: usize = env::args().nth(1).map_or(41, |n| n.parse().expect("a number of pairs"));
    let cases: [(&str, fn() -> f64, fn() -> f64); 4] = [
        ("resume and suspend, a value each way", acorn_::switch, corosensei_::switch),
        ("an element of a recursive walk", acorn_::walks, corosensei_::walks),
        ("new, one suspension, return", acorn_::life, corosensei_::life),
        ("new, one suspension, dropped", acorn_::cancelled, corosensei_::cancelled),
    ];
    println!("{:40} {:>9} {:>13} {:>6}", "", "acorn, ns", "corosensei", "ratio");
    for (name, acorn, corosensei) in cases {
        let mut both: Vec<(f64, f64)> = (0..pairs + 1)
            .map(|pair| if pair % 2 == 0 { (acorn(), corosensei()) } else { let c = corosensei(); (acorn(), c) })
            .collect();
        both.remove(0); // warms up
        println!(
            "{name:40} {:9.1} {:13.1} {:6.2}",
            median(both.iter().map(|pair| pair.0).collect()),
            median(both.iter().map(|pair| pair.1).collect()),
            median(both.iter().map(|pair| pair.0 / pair.1).collect())
        );
    }
}
