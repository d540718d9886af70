//! tokio's scheduler for one thread. The command line and the output are those of bench/native.h. The code that
//! measures is a task among the others, because the runtime does not schedule the future that it blocks on with them.
use std::env;
use std::process::exit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{channel, Receiver, Sender};
use std::time::Duration;
use tokio::task::{spawn, yield_now, JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

#[path = "../../sending.rs"]
mod sending;
use sending::{send_some, Connection, SENDERS, SENT_AT_ONCE};

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

/// A counter for the tasks of one thread, as cheap as a plain number.
struct Counter(AtomicUsize);

impl Counter {
    fn add(&self) {
        self.0.store(self.0.load(Relaxed) + 1, Relaxed);
    }
    fn get(&self) -> usize {
        self.0.load(Relaxed)
    }
}

const HOUR: Duration = Duration::from_secs(3600);
static COUNT: Counter = Counter(AtomicUsize::new(0));
static STOP: AtomicBool = AtomicBool::new(false);

/// The tasks of a sample.
enum Made {
    Ring(Vec<JoinHandle<()>>),
    PingPong(Sender<usize>, Receiver<usize>),
    Timeout(Sender<usize>, Receiver<usize>),
    Spawn(usize),
    Group(usize),
    Cancel(usize),
    WriteFully(usize),
}

async fn yielding() {
    while !STOP.load(Relaxed) {
        COUNT.add();
        yield_now().await;
    }
}

async fn replying(mut there: Receiver<usize>, back: Sender<usize>) {
    while let Some(value) = there.recv().await {
        if back.send(value + 1).await.is_err() {
            return;
        }
    }
}

async fn send_when_ready(c: &mut Connection, data: usize, size: usize) -> usize {
    yield_now().await;
    send_some(c, data, size)
}

async fn write_fully(c: &mut Connection, mut data: usize, mut size: usize) {
    while size > 0 {
        let sent = send_when_ready(c, data, size).await;
        data += sent;
        size -= sent;
    }
}

async fn sender(sends: usize) {
    let mut c = Connection::new();
    write_fully(&mut c, 0, sends * SENT_AT_ONCE).await;
    assert_eq!(c.sends, sends, "not all was sent");
}

fn make(name: &str, number: usize) -> Made {
    match name {
        "write_fully" => Made::WriteFully(number),
        "ring" => {
            STOP.store(false, Relaxed);
            Made::Ring((1..number).map(|_| spawn(yielding())).collect())
        }
        "ping_pong" | "timeout" => {
            let ((there, receiver), (sender, back)) = (channel(1), channel(1));
            spawn(replying(receiver, sender));
            if name == "timeout" {
                Made::Timeout(there, back)
            } else {
                Made::PingPong(there, back)
            }
        }
        "group" => Made::Group(number),
        "cancel" => Made::Cancel(number),
        _ => Made::Spawn(number),
    }
}

/// Does the work `rounds` times and returns the number of measured operations.
async fn run(made: &mut Made, rounds: usize) -> usize {
    match made {
        Made::Ring(_) => {
            let before = COUNT.get();
            for _ in 0..rounds {
                COUNT.add();
                yield_now().await;
            }
            COUNT.get() - before
        }
        Made::PingPong(there, back) => {
            let mut value = 0;
            for _ in 0..rounds {
                there.send(value).await.expect("a receiver");
                value = back.recv().await.expect("a value");
            }
            assert_eq!(value, rounds, "other values came back");
            rounds
        }
        Made::Timeout(there, back) => {
            let mut value = 0;
            for _ in 0..rounds {
                there.send(value).await.expect("a receiver");
                value = timeout(HOUR, back.recv()).await.expect("no timeout").expect("a value");
            }
            assert_eq!(value, rounds, "other values came back");
            rounds
        }
        Made::Group(number) => {
            let before = COUNT.get();
            for _ in 0..rounds {
                let mut set = JoinSet::new();
                for _ in 0..*number {
                    set.spawn(async { COUNT.add() });
                }
                while let Some(result) = set.join_next().await {
                    result.expect("a result");
                }
            }
            assert_eq!(COUNT.get() - before, rounds * *number, "not every task ran");
            rounds * *number
        }
        Made::Cancel(number) => {
            let mut cancelled = 0;
            for _ in 0..rounds {
                let mut set = JoinSet::new();
                for _ in 0..*number {
                    set.spawn(async {
                        COUNT.add();
                        sleep(HOUR).await
                    });
                }
                let all = COUNT.get() + *number;
                while COUNT.get() < all {
                    yield_now().await;
                }
                set.abort_all();
                while let Some(result) = set.join_next().await {
                    cancelled += result.expect_err("no result").is_cancelled() as usize;
                }
            }
            assert_eq!(cancelled, rounds * *number, "not every task was cancelled");
            cancelled
        }
        Made::WriteFully(number) => {
            for _ in 0..rounds {
                let tasks: Vec<_> = (0..SENDERS).map(|_| spawn(sender(*number / SENDERS))).collect();
                for task in tasks {
                    task.await.expect("a result");
                }
            }
            rounds * *number
        }
        Made::Spawn(1) => {
            let before = COUNT.get();
            for _ in 0..rounds {
                spawn(async { COUNT.add() }).await.expect("a result");
            }
            assert_eq!(COUNT.get() - before, rounds, "not every task ran");
            rounds
        }
        Made::Spawn(number) => {
            let before = COUNT.get();
            let mut tasks = Vec::with_capacity(*number);
            for _ in 0..rounds {
                tasks.extend((0..*number).map(|_| spawn(async { COUNT.add() })));
                for task in tasks.drain(..) {
                    task.await.expect("a result");
                }
            }
            assert_eq!(COUNT.get() - before, rounds * *number, "not every task ran");
            rounds * *number
        }
    }
}

async fn end(made: Made) {
    if let Made::Ring(tasks) = made {
        STOP.store(true, Relaxed);
        for task in tasks {
            task.await.expect("an ended task");
        }
    }
}

async fn measure(name: String, number: usize, samples: usize, ns: f64) {
    let mut rounds = 0;
    for _ in 0..samples {
        let mut made = make(&name, number);
        let mut n = 1;
        while rounds == 0 {
            let start = thread_time();
            run(&mut made, n).await;
            let taken = thread_time() - start;
            if taken > ns / 8.0 {
                rounds = (ns / taken * n as f64) as usize + 1;
            }
            n *= 2;
        }
        run(&mut made, rounds / 50 + 1).await;
        let start = thread_time();
        let count = run(&mut made, rounds).await;
        println!("{:.4}", (thread_time() - start) / count as f64);
        end(made).await;
    }
}

fn main() {
    let args: Vec<String> = env::args().collect();
    let cases = ["ring", "ping_pong", "timeout", "spawn", "group", "cancel", "write_fully"];
    if args.len() != 7 || !cases.contains(&args[1].as_str()) {
        eprintln!("usage: {} CASE NUMBER - SAMPLES MILLISECONDS SEED", args[0]);
        exit(2);
    }
    let number = |i: usize| args[i].parse::<usize>().expect("a number");
    let (name, n, samples, ns) = (args[1].clone(), number(2), number(4), number(5) as f64 * 1e6);
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async move { spawn(measure(name, n, samples, ns)).await.expect("the measurement") });
}
