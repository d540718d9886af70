"""Coroutines from Python functions, which suspend at any depth of calls, also below functions in C (sorted, re.sub, a
parser's callbacks), where a generator cannot. They have a generator's methods: iteration, send(), throw(), close().

    def walk(co, depth):
        if depth:
            walk(co, depth - 1)
            co.suspend(depth)
            walk(co, depth - 1)

    assert list(acorn.Coroutine(walk, 2)) == [1, 2, 1]

Limits: ../README.md. Where the libraries are: ACORN_LIBRARY_PATH, else where the dynamic linker finds them."""
import ctypes
import json
import os
import threading

_folder = os.environ.get("ACORN_LIBRARY_PATH", "")
_acorn = ctypes.CDLL(os.path.join(_folder, "libacorn.so.0" if not _folder else "libacorn.so"), mode=ctypes.RTLD_GLOBAL)
_own = ctypes.PyDLL(os.path.join(_folder, "libacorn_python.so"))  # holds the GIL in calls
for _name, _result, *_arguments in [
    ("acorn_python_new", ctypes.c_void_p, ctypes.py_object, ctypes.c_size_t),
    ("acorn_python_resume", ctypes.c_int, ctypes.c_void_p),
    ("acorn_python_suspend", ctypes.c_int, ctypes.c_void_p),
    ("acorn_python_free", None, ctypes.c_void_p),
]:
    _function = getattr(_own, _name)
    _function.restype, _function.argtypes = _result, _arguments
_acorn.aco_error_message.restype = ctypes.c_char_p

STACK_SIZE = 8 << 20  # of address space; only what is touched takes memory


class Coroutine:
    """function(co, *arguments) runs at the first resume."""

    def __init__(self, function, *arguments, stack_size=STACK_SIZE):
        self._function, self._arguments = function, arguments
        self._begun = self._running = False
        self._passed = self._thrown = self._yielded = self._raised = self._result = None
        self._thread = threading.get_ident()
        self._c = _own.acorn_python_new(self._run, stack_size)
        if not self._c:
            raise MemoryError(_acorn.aco_error_message().decode())

    def _run(self):
        try:
            self._result = self._function(self, *self._arguments)
        except BaseException as error:  # goes on in the resumer
            self._raised = error

    def suspend(self, value=None):
        """In the coroutine: gives `value` to the resumer; returns what send() is called with."""
        self._yielded = value
        if _own.acorn_python_suspend(self._c) != 0:
            raise RuntimeError("suspend() outside of its coroutine")
        thrown, self._thrown = self._thrown, None
        if thrown is not None:
            raise thrown
        passed, self._passed = self._passed, None
        return passed

    def _resume(self):
        if self._c is None:
            raise StopIteration
        if self._running:
            raise ValueError("the coroutine is running")
        if self._thread != threading.get_ident():
            raise RuntimeError("a coroutine stays on its thread")
        self._begun = self._running = True
        suspended = _own.acorn_python_resume(self._c)
        self._running = False
        if suspended:
            yielded, self._yielded = self._yielded, None
            return yielded
        self._free()
        if self._raised is not None:
            error, self._raised = self._raised, None
            if isinstance(error, StopIteration):
                raise RuntimeError("the coroutine raised StopIteration") from error
            raise error
        raise StopIteration(self._result)

    def _free(self):
        c, self._c = self._c, None
        self._function = self._arguments = None
        _own.acorn_python_free(c)

    def send(self, value):
        self._passed = value
        return self._resume()

    def __next__(self):
        return self.send(None)

    def __iter__(self):
        return self

    def throw(self, error):
        """Raises `error` where the coroutine is suspended."""
        if not self._begun and self._c is not None:
            self._free()
        if self._c is None:
            raise error
        self._thrown = error
        return self._resume()

    def close(self):
        """Ends it: suspend() raises GeneratorExit there."""
        try:
            self.throw(GeneratorExit())
        except (GeneratorExit, StopIteration):
            return
        raise RuntimeError("the coroutine ignored GeneratorExit")

    def __del__(self):
        if getattr(self, "_c", None) is not None and self._thread == threading.get_ident():
            self.close()


def constants():
    """Values and layouts from the headers: constants.json."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "constants.json")) as file:
        return json.load(file)
