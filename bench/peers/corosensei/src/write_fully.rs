//! write_fully() in ten coroutines, resumed in turn until all have returned, like bench/write_fully.c.
use crate::sending::{send_some, Connection, SENDERS, SENT_AT_ONCE};
use crate::{default_stack, measure, place, Options};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::arch::asm;

type Waiting = Yielder<(), ()>;

/// Each WAY has its own copies of the functions.
#[inline(never)]
fn wait_for_ready<const WAY: usize>(yielder: &Waiting) {
    unsafe { asm!("/* {way} */", way = const WAY, options(nomem, nostack, preserves_flags)) };
    yielder.suspend(());
}

#[inline(never)]
fn send_when_ready<const WAY: usize>(yielder: &Waiting, c: &mut Connection, data: usize, size: usize) -> usize {
    wait_for_ready::<WAY>(yielder);
    send_some(c, data, size)
}

#[inline(never)]
fn write_fully<const WAY: usize>(yielder: &Waiting, c: &mut Connection, mut data: usize, mut size: usize) {
    while size > 0 {
        let sent = send_when_ready::<WAY>(yielder, c, data, size);
        data += sent;
        size -= sent;
    }
}

fn sender<const WAY: usize>(sends: usize) -> Coroutine<(), (), ()> {
    Coroutine::with_stack(default_stack(), move |yielder: &Waiting, ()| {
        let mut c = Connection::new();
        write_fully::<WAY>(yielder, &mut c, 0, sends * SENT_AT_ONCE);
        assert_eq!(c.sends, sends, "not all was sent");
    })
}

#[inline(never)]
fn run_in_turn<const PAD: usize>(tasks: &mut Vec<Coroutine<(), (), ()>>) {
    place::<PAD>();
    while !tasks.is_empty() {
        tasks.retain_mut(|co| matches!(co.resume(()), CoroutineResult::Yield(())));
    }
}

/// With `MIXED` every second coroutine takes the other path.
pub fn run<const PAD: usize, const MIXED: bool>(o: &Options, rounds: &mut usize) {
    let sends = o.n / SENDERS;
    measure(rounds, o.ns, o.n, |times| {
        for _ in 0..times {
            let make = |i| if MIXED && i % 2 == 1 { sender::<1>(sends) } else { sender::<0>(sends) };
            run_in_turn::<PAD>(&mut (0..SENDERS).map(make).collect());
        }
    });
}
