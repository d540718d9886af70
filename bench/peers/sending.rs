//! Like bench/sending.h: a mocked connection that takes SENT_AT_ONCE bytes of each send_some(), and the check.

pub const SENDERS: usize = 10;
pub const SENT_AT_ONCE: usize = 800;

pub struct Connection {
    expected: usize,
    pub sends: usize,
}

impl Connection {
    pub fn new() -> Self {
        Connection { expected: 0, sends: 0 }
    }
}

#[inline(never)]
pub fn send_some(c: &mut Connection, data: usize, size: usize) -> usize {
    let sent = size.min(SENT_AT_ONCE);
    assert_eq!(data, c.expected, "other bytes were sent");
    c.expected = data + sent;
    c.sends += 1;
    sent
}
