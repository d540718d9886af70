//! threads-tokio THREADS CASE N: as ../acorn.c, by tokio's runtime for several threads. Its channel has one receiver:
//! those of `many` share it by a mutex.
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, Mutex};
use tokio::task::JoinHandle;

const BATCH: usize = 1000;
const CHILDREN: usize = 10;
const PAIRS: usize = 4;
const ROOM: usize = 64;
const TURNS: u64 = 100_000_000;

fn work(turns: u64) {
    for i in 0..turns {
        black_box(i);
    }
}

async fn submit_all(n: usize, turns: u64) {
    for _ in 0..n / BATCH {
        let all: Vec<JoinHandle<()>> = (0..BATCH).map(|_| tokio::spawn(async move { work(turns) })).collect();
        for each in all {
            each.await.unwrap();
        }
    }
}

fn skynet(from: usize, count: usize) -> Pin<Box<dyn Future<Output = usize> + Send>> {
    Box::pin(async move {
        if count == 1 {
            return from;
        }
        let part = count / CHILDREN;
        let all: Vec<_> = (0..CHILDREN).map(|i| tokio::spawn(skynet(from + i * part, part))).collect();
        let mut sum = 0;
        for each in all {
            sum += each.await.unwrap();
        }
        sum
    })
}

fn tree(from: usize, count: usize) -> Pin<Box<dyn Future<Output = usize> + Send>> {
    Box::pin(async move {
        if count == 1 {
            return from;
        }
        let left = tokio::spawn(tree(from, count / 2));
        let right = tree(from + count / 2, count - count / 2).await;
        left.await.unwrap() + right
    })
}

async fn ping_pong(n: usize) {
    let (there, mut answers) = mpsc::channel(1);
    let (back, mut got) = mpsc::channel(1);
    let other = tokio::spawn(async move {
        while let Some(value) = answers.recv().await {
            back.send(value).await.unwrap();
        }
    });
    for i in 0..n / 2 {
        there.send(i).await.unwrap();
        got.recv().await.unwrap();
    }
    drop(there);
    other.await.unwrap();
}

/// Each side on a thread with a runtime of its own.
fn ping_pong_across(n: usize) {
    let (there, mut answers) = mpsc::channel(1);
    let (back, mut got) = mpsc::channel(1);
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    let other = std::thread::spawn(move || {
        runtime().block_on(async {
            while let Some(value) = answers.recv().await {
                back.send(value).await.unwrap();
            }
        })
    });
    runtime().block_on(async {
        for i in 0..n / 2 {
            there.send(i).await.unwrap();
            got.recv().await.unwrap();
        }
        drop(there);
    });
    other.join().unwrap();
}

async fn many_to_many(n: usize) {
    let (sender, receiver) = mpsc::channel(ROOM);
    let receiver = Arc::new(Mutex::new(receiver));
    let mut all = Vec::new();
    for _ in 0..PAIRS {
        let (sender, receiver) = (sender.clone(), receiver.clone());
        all.push(tokio::spawn(async move {
            for i in 0..n / PAIRS {
                sender.send(i).await.unwrap();
            }
        }));
        all.push(tokio::spawn(async move {
            for _ in 0..n / PAIRS {
                receiver.lock().await.recv().await.unwrap();
            }
        }));
    }
    for each in all {
        each.await.unwrap();
    }
}

async fn measure(name: String, n: usize) {
    let begin = Instant::now();
    work(if name == "work" { TURNS } else { 0 });
    let turns = (TURNS as f64 * 1000.0 / begin.elapsed().as_nanos() as f64) as u64;
    for _ in 0..5 {
        let begin = Instant::now();
        match name.as_str() {
            "empty" => submit_all(n, 0).await,
            "work" => submit_all(n, turns).await,
            "skynet" => assert_eq!(skynet(0, n).await, n * (n - 1) / 2),
            "tree" => assert_eq!(tree(0, n).await, n * (n - 1) / 2),
            "pingpong" => ping_pong(n).await,
            "across" => tokio::task::block_in_place(|| ping_pong_across(n)),
            "many" => many_to_many(n).await,
            _ => panic!("it has no {name}"),
        }
        println!("{name} {:.1}", begin.elapsed().as_nanos() as f64 / n as f64);
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let threads = words[1].parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).build().unwrap();
    let (name, n) = (words[2].clone(), words[3].parse().unwrap());
    // A task among the others: the future that a runtime blocks on is run by one more thread.
    runtime.block_on(async { tokio::spawn(measure(name, n)).await.unwrap() });
}
