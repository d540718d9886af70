//! What is said of panic = "abort": `cargo run --profile abort --example abort [scope]`.
use acorn::{scope, Coroutine, Yielder};

fn main() {
    let body = |y: &Yielder<(), ()>, ()| y.suspend(());
    let mut co = Coroutine::new(body);
    co.next();
    drop(co);
    println!("leaked");
    if std::env::args().nth(1).is_some() {
        scope(body, |mut co| co.next());
        println!("not reached");
    }
}
