//! The words of a text, found by a recursive-descent parser that knows nothing of its consumer: a push parser is turned
//! into an iterator.
use acorn::{scope, Yielder};

/// words := space* (word | '(' words ')')*
fn words<'t>(y: &Yielder<(usize, &'t str), ()>, mut text: &'t str, depth: usize) -> &'t str {
    loop {
        text = text.trim_start();
        match text.chars().next() {
            None => return text,
            Some('(') => text = words(y, &text[1..], depth + 1),
            Some(')') => return &text[1..],
            Some(_) => {
                let end = text.find(|c: char| c.is_whitespace() || "()".contains(c)).unwrap_or(text.len());
                y.suspend((depth, &text[..end]));
                text = &text[end..];
            }
        }
    }
}

fn main() {
    let text = std::env::args().nth(1).unwrap_or_else(|| "(define (square x) (* x x))".to_string());
    scope(
        |y, ()| assert_eq!(words(y, &text, 0), "", "a ')' too many"),
        |found| found.take(100).for_each(|(depth, word)| println!("{:1$}{word}", "", 2 * depth)),
    );
}
