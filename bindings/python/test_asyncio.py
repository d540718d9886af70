#!/usr/bin/env python3
"""Promises of acorn_asyncio.py."""
import asyncio
import contextvars
import ctypes
import errno
import os
import unittest

import acorn_asyncio
from acorn_asyncio import call, task, wait

C = ctypes.CDLL(os.path.join(os.environ["ACORN_LIBRARY_PATH"], "libtest_asyncio.so"))
cancelled = []


async def double(n):
    await asyncio.sleep(0)
    return n * 2


async def fail(n):
    raise OSError(n, "refused") if n else ValueError("of the test")


async def forever(_):
    try:
        await asyncio.Future()
    finally:
        cancelled.append(1)


acorn_asyncio.awaitables += [double, fail, forever]


class Functions(unittest.IsolatedAsyncioTestCase):
    async def test_values_from_below_c(self):
        def sums(n):
            return sum(sorted(range(n), key=lambda i: -wait(double(i))))
        self.assertEqual(await asyncio.gather(*(call(sums, n) for n in range(10))),
                         [n * (n - 1) // 2 for n in range(10)])

    async def test_exceptions_both_ways(self):
        def catches():
            try:
                wait(fail(0))
            except ValueError:
                raise KeyError("out")
        with self.assertRaises(KeyError):
            await call(catches)

    async def test_calls_inside_calls(self):
        def outer():
            return wait(call(inner)) + wait(double(1))

        def inner():
            return wait(double(20))
        self.assertEqual(await call(outer), 42)

    async def test_cancelling(self):
        seen = []

        def sleeps():
            try:
                wait(asyncio.sleep(3600))
            except asyncio.CancelledError:
                seen.append(1)
                raise
        running = asyncio.create_task(call(sleeps))
        await asyncio.sleep(0)
        running.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await running
        self.assertEqual(seen, [1])
        self.assertEqual(acorn_asyncio._awaiting, {})

    async def test_context(self):
        variable = contextvars.ContextVar("variable")
        variable.set(5)
        self.assertEqual(await call(lambda: wait(double(variable.get()))), 10)

    async def test_outside(self):
        with self.assertRaises(RuntimeError):
            wait(None)


class Tasks(unittest.IsolatedAsyncioTestCase):
    async def test_results(self):
        self.assertEqual(await asyncio.gather(*(task(C.naps, n) for n in range(1, 9))), list(range(1, 9)))
        self.assertIsNone(await task(C.naps))

    async def test_awaitables(self):
        self.assertEqual(await asyncio.gather(*(task(C.asks, n) for n in range(1, 9))), [n * 16 for n in range(1, 9)])

    async def test_errors(self):
        with self.assertRaises(OSError) as caught:
            await task(C.fails, errno.EBADF)
        self.assertEqual(caught.exception.errno, errno.EBADF)
        told = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context["exception"]))
        with self.assertRaises(OSError) as caught:
            await task(C.fails, 0)
        self.assertEqual((caught.exception.errno, type(told[0])), (errno.EIO, ValueError))

    async def test_scopes(self):
        for function, error, times in [(C.gives_up, errno.ETIMEDOUT, 1), (C.refuses, errno.ECANCELED, 0)]:
            cancelled.clear()
            with self.assertRaises(OSError) as caught:
                await task(function)
            self.assertEqual(caught.exception.errno, error)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            self.assertEqual(len(cancelled), times)

    async def test_nobody_waits(self):
        running = asyncio.create_task(task(C.naps))
        await asyncio.sleep(0)
        running.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await running
        await task(C.naps)

    async def asyncTearDown(self):
        self.assertFalse(hasattr(asyncio.get_running_loop(), "_acorn_driver"))

    async def test_a_task_that_cannot_start(self):
        with self.assertRaises(OSError):
            await task(C.naps, stack_size=1 << 60)
        await task(C.naps)


if __name__ == "__main__":
    unittest.main()
