"""Acorn and asyncio on one thread: each awaits the other.

    async def main():
        answer = await acorn_asyncio.call(handle, connection)   # handle() is plain Python
    def handle(connection):
        reply = acorn_asyncio.wait(connection.fetch("..."))     # from any depth of calls, also below functions in C

    result = await acorn_asyncio.task(library.entry, 5)         # a task of C, which the loop runs beside its own

A task of C waits for an awaitable by acorn_asyncio_await() (acorn_asyncio.h): `awaitables` has functions that make one
of an integer. Where the libraries are: ACORN_LIBRARY_PATH, as in acorn.py."""
import asyncio
import contextvars
import ctypes
import errno
import os

import acorn

# ---- Python's functions ----

_awaiting = {}  # asyncio's task -> the coroutine in which its call() runs


async def call(function, *arguments):
    """Runs function(*arguments), in which wait() works, in a coroutine of Acorn, with a copy of the context."""
    task, loop, context = asyncio.current_task(), asyncio.get_running_loop(), contextvars.copy_context()
    outer = _awaiting.get(task)

    def body(_):
        asyncio._set_running_loop(loop)  # it belongs to a thread state, and the coroutine has one of its own
        return context.run(function, *arguments)
    co = acorn.Coroutine(body)
    resume, value = co.send, None
    try:
        while True:
            _awaiting[task] = co
            try:
                awaitable = resume(value)
            finally:
                _awaiting[task] = outer
            try:
                resume, value = co.send, await awaitable
            except BaseException as error:  # also a cancelling: the function sees it where it waits
                resume, value = co.throw, error
    except StopIteration as ended:
        return ended.value
    finally:
        if outer is None:
            _awaiting.pop(task, None)


def wait(awaitable):
    """In a function that call() runs: waits for `awaitable`, and returns or raises its result."""
    co = _awaiting.get(asyncio.current_task())
    if co is None:
        raise RuntimeError("wait() outside of call()")
    return co.suspend(awaitable)


# ---- Tasks of C ----


class _Object(ctypes.Structure):
    _fields_ = [("next", ctypes.c_void_p), ("kind", ctypes.c_int), ("error", ctypes.c_int),
                ("function", ctypes.c_void_p), ("awaitable", ctypes.c_int), ("arg", ctypes.c_void_p),
                ("result", ctypes.c_void_p)]


_ENDED, _WANTED, _ABANDONED = range(3)
_object = ctypes.POINTER(_Object)
_c = ctypes.PyDLL(os.path.join(os.environ.get("ACORN_LIBRARY_PATH", ""), "libacorn_asyncio.so"), use_errno=True)
for _name, _result, *_arguments in [
    ("acorn_asyncio_spawn", _object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t),
    ("acorn_asyncio_turn", ctypes.c_int, ctypes.POINTER(ctypes.c_int64)),
    ("acorn_asyncio_fd", ctypes.c_int),
    ("acorn_asyncio_next", _object),
    ("acorn_asyncio_answer", None, _object, ctypes.c_void_p, ctypes.c_int),
    ("acorn_asyncio_free", None, _object),
]:
    _function = getattr(_c, _name)
    _function.restype, _function.argtypes = _result, _arguments

awaitables = []  # functions: an integer (a pointer of C) -> an awaitable, whose result is an integer or None


def _refused(what):
    return OSError(ctypes.get_errno(), f"{what}: {acorn._acorn.aco_error_message().decode()}")


def _key(found):
    return ctypes.cast(found, ctypes.c_void_p).value


class _Driver:
    """What runs the thread's tasks of C in one loop, while there are any."""

    def __init__(self, loop):
        self._loop, self._next, self._ended, self._wanted = loop, None, {}, {}
        self._fd = _c.acorn_asyncio_fd()
        if self._fd < 0:
            raise _refused("acorn_asyncio")
        loop.add_reader(self._fd, self.turn)

    def start(self, function, arg, stack_size):
        found = _c.acorn_asyncio_spawn(function, arg, stack_size)
        if not found:
            raise _refused("acorn_asyncio.task")
        ended = self._ended[_key(found)] = self._loop.create_future()
        self._turn_in(0)
        return ended

    def _turn_in(self, ns):
        if self._next:
            self._next.cancel()
        self._next = self._loop.call_later(ns / 1e9, self.turn)

    def turn(self):
        if self._next:
            self._next.cancel()
            self._next = None
        wait_ns = ctypes.c_int64()
        left = _c.acorn_asyncio_turn(ctypes.byref(wait_ns))
        while found := _c.acorn_asyncio_next():
            [self._end, self._want, self._abandon][found.contents.kind](found)
        if left < 0:
            raise _refused("acorn_asyncio")
        if wait_ns.value >= 0 and left:
            self._turn_in(wait_ns.value)
        if not self._ended and not self._wanted and not left:
            self._loop.remove_reader(self._fd)
            del self._loop._acorn_driver

    def _end(self, found):
        ended, error = self._ended.pop(_key(found)), found.contents.error
        if ended.done():
            pass  # nobody waits for it any more
        elif error:
            ended.set_exception(OSError(error, os.strerror(error)))
        else:
            ended.set_result(found.contents.result)
        _c.acorn_asyncio_free(found)

    def _want(self, found):
        async def answer():
            result, error = None, 0
            try:
                result = await awaitables[found.contents.awaitable](found.contents.arg)
            except asyncio.CancelledError:
                error = errno.ECANCELED
            except OSError as raised:
                error = raised.errno or errno.EIO
            except Exception as raised:
                error = errno.EIO
                self._loop.call_exception_handler({"message": "an awaitable of a task of Acorn", "exception": raised})
            del self._wanted[_key(found)]
            _c.acorn_asyncio_answer(found, result, error)
            self._turn_in(0)
        self._wanted[_key(found)] = self._loop.create_task(answer())

    def _abandon(self, found):
        self._wanted[_key(found)].cancel()


async def task(function, arg=None, stack_size=0):
    """Runs the function of C `void *function(void *arg)` as a task. Returns its result as an integer, or None for NULL;
    raises OSError if it returns ACO_ERROR. If the caller is cancelled, the task goes on."""
    loop = asyncio.get_running_loop()
    driver = getattr(loop, "_acorn_driver", None)
    if driver is None:
        driver = loop._acorn_driver = _Driver(loop)
    return await driver.start(ctypes.cast(function, ctypes.c_void_p), arg, stack_size)
