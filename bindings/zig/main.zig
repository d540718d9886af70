//! Coroutines in Zig: values both ways, an iterator over a recursive function, cancelling. aco.zig is what
//! `zig translate-c -DACO_CONFIG_NO_INLINE -lc` makes of aco.h (../README.md).
const std = @import("std");
const aco = @import("aco.zig");

fn pointer(value: isize) ?*anyopaque {
    return @ptrFromInt(@as(usize, @bitCast(value)));
}

fn integer(value: ?*anyopaque) isize {
    return @bitCast(@intFromPtr(value));
}

/// A new coroutine, or the library's message and the end.
fn start(function: aco.aco_function_t, arg: ?*anyopaque) *aco.aco_t {
    return aco.aco_new(function, arg, null) orelse std.debug.panic("{s}", .{aco.aco_error_message()});
}

/// Yields the sum of what it has been sent, until that is 0; the sum is its result, too.
fn sum(_: ?*anyopaque) callconv(.c) ?*anyopaque {
    var total: isize = 0;
    while (true) {
        const next = integer(aco.aco_yield_value(pointer(total)));
        if (next == 0) return pointer(total);
        total += next;
    }
}

const Tree = struct {
    key: isize,
    left: ?*const Tree = null,
    right: ?*const Tree = null,

    /// Yields from any depth of the recursion.
    fn walk(tree: *const Tree) void {
        if (tree.left) |left| left.walk();
        _ = aco.aco_yield_value(pointer(tree.key));
        if (tree.right) |right| right.walk();
    }

    fn entry(tree: ?*anyopaque) callconv(.c) ?*anyopaque {
        walk(@ptrCast(@alignCast(tree)));
        return null;
    }

    fn keys(tree: *const Tree) Iterator {
        return .{ .co = start(entry, @constCast(tree)) };
    }
};

/// What a coroutine yields, for `while (it.next()) |value|`.
const Iterator = struct {
    co: *aco.aco_t,

    fn next(it: Iterator) ?isize {
        if (it.co.is_end != 0) return null;
        const value = integer(aco.aco_send(it.co, null));
        return if (it.co.is_end != 0) null else value;
    }

    fn deinit(it: Iterator) void {
        aco.aco_destroy(it.co);
    }
};

var released: u32 = 0;

fn release(_: ?*anyopaque) callconv(.c) void {
    released += 1;
}

/// Holds something while it is suspended. aco_cancel() makes the deferred call; it runs no `defer` of Zig's, for Zig has
/// no unwinding.
fn holder(_: ?*anyopaque) callconv(.c) ?*anyopaque {
    if (aco.aco_defer(release, null) != 0) return null;
    _ = aco.aco_yield_value(null);
    return null; // makes the deferred call, too
}

fn check(good: bool) void {
    if (!good) @panic("not what it should be");
}

pub fn main() void {
    const adder = start(sum, null);
    defer aco.aco_destroy(adder);
    _ = aco.aco_send(adder, null); // runs to the first yield
    check(integer(aco.aco_send(adder, pointer(40))) == 40);
    check(integer(aco.aco_send(adder, pointer(2))) == 42);
    check(integer(aco.aco_send(adder, null)) == 42 and adder.is_end != 0);

    const one = Tree{ .key = 1 };
    const three = Tree{ .key = 3 };
    const two = Tree{ .key = 2, .left = &one, .right = &three };
    const it = two.keys();
    defer it.deinit();
    var expected: isize = 1;
    while (it.next()) |key| : (expected += 1)
        check(key == expected);
    check(expected == 4);

    const held = start(holder, null);
    _ = aco.aco_send(held, null);
    check(released == 0 and aco.aco_cancel(held) == 0);
    check(released == 1 and aco.aco_state(held) == aco.ACO_STATE_DONE);
    aco.aco_destroy(held);
    std.debug.print("zig: passed\n", .{});
}
