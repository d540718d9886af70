"""What acorn.py promises. Run with ACORN_LIBRARY_PATH."""
import contextvars
import ctypes
import gc
import json
import re
import sys
import threading
import traceback
import unittest

import acorn
from acorn import Coroutine


def walk(co, depth):
    if depth:
        walk(co, depth - 1)
        co.suspend(depth)
        walk(co, depth - 1)


def helper(co, *arguments):
    """Resumes from a frame that is gone when the coroutine goes on."""
    return next(co, *arguments)


class Test(unittest.TestCase):
    def test_iterates_a_recursion(self):
        self.assertEqual(list(Coroutine(walk, 3)), [1, 2, 1, 3, 1, 2, 1])

    def test_passes_values(self):
        def add(co):
            total = 0
            while total < 10:
                total += co.suspend(total)
            return "enough"
        co = Coroutine(add)
        self.assertEqual([next(co), co.send(4), co.send(5)], [0, 4, 9])
        with self.assertRaises(StopIteration) as end:
            co.send(1)
        self.assertEqual(end.exception.value, "enough")
        self.assertEqual(list(co), [])

    def test_suspends_below_c(self):
        def keys(co):
            return sorted([3, 1, 2], key=lambda n: co.suspend(n) or n)
        co = Coroutine(keys)
        self.assertEqual([next(co), next(co), next(co)], [3, 1, 2])
        with self.assertRaises(StopIteration) as end:
            next(co)
        self.assertEqual(end.exception.value, [1, 2, 3])
        found = Coroutine(lambda co: re.sub("[a-z]+", lambda match: co.suspend(match.group()) or "", "one, two"))
        self.assertEqual(list(found), ["one", "two"])
        pairs = Coroutine(lambda co: json.loads('{"a": {"b": 1}}', object_pairs_hook=co.suspend))
        self.assertEqual(list(pairs), [[("b", 1)], [("a", None)]])

    def test_many_in_any_order(self):
        def count(co, first):
            for n in range(first, first + 50):
                self.assertEqual([n + i for i in (1, 2)], [n + 1, n + 2])
                helper(iter([co.suspend(n)]))
        all_ = [Coroutine(count, first, stack_size=1 << 20) for first in range(200)]
        for n in range(50):
            for first in range(200):
                at = (first * 71 + n) % 200
                self.assertEqual(helper(all_[at]), at + n)
            gc.collect()
        for co in all_:
            self.assertIsNone(helper(co, None))

    def test_exceptions_come_out_with_their_traceback(self):
        def deep(co):
            co.suspend(1)
            raise KeyError("deep")
        co = Coroutine(deep)
        next(co)
        try:
            raise OSError("handled here")
        except OSError:
            try:
                next(co)
            except KeyError as error:
                self.assertIn("in deep", "".join(traceback.format_tb(error.__traceback__)))
            self.assertIsInstance(sys.exc_info()[1], OSError)
        self.assertIsNone(co._c)

    def test_each_handles_its_own_exceptions(self):
        def handles(co, error):
            try:
                raise error
            except Exception:
                for _ in range(3):
                    co.suspend()
                    self.assertIs(sys.exc_info()[1], error)
        both = [Coroutine(handles, KeyError()), Coroutine(handles, OSError())]
        for _ in range(4):
            for co in both:
                helper(co, None)
        self.assertIsNone(sys.exc_info()[1])

    def test_close_and_throw(self):
        seen = []

        def body(co):
            try:
                while True:
                    try:
                        co.suspend(len(seen))
                    except KeyError:
                        seen.append("key")
            finally:
                seen.append("end")
        co = Coroutine(body)
        self.assertEqual(next(co), 0)
        self.assertEqual(co.throw(KeyError()), 1)
        co.close()
        co.close()
        self.assertEqual(seen, ["key", "end"])
        never = Coroutine(body)
        never.close()
        self.assertEqual(list(never), [])

    def test_nests(self):
        def outer(co):
            for value in Coroutine(walk, 2):
                co.suspend(value * 10)
        self.assertEqual(list(Coroutine(outer)), [10, 20, 10])

    def test_is_used_on_its_thread_and_suspends_itself_only(self):
        co = Coroutine(walk, 2)
        next(co)
        errors = []

        def elsewhere():
            try:
                next(co)
            except RuntimeError as error:
                errors.append(str(error))
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        self.assertEqual(errors, ["a coroutine stays on its thread"])
        with self.assertRaises(RuntimeError):
            co.suspend(1)
        with self.assertRaises(ValueError):
            next(Coroutine(lambda co: next(co)))

    def test_threads(self):
        """Other threads get the GIL while coroutines run."""
        results = []

        def work():
            results.append(sum(sum(Coroutine(walk, 7)) for _ in range(20)))
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [20 * 247] * 4)

    def test_deep_recursion_is_an_exception(self):
        def python(co, n=0):
            return python(co, n + 1)

        def through_c(co, n=0):
            return max([n], key=lambda n: through_c(co, n + 1))
        for function in python, through_c:
            with self.assertRaises(RecursionError):
                next(Coroutine(function))
        nested = Coroutine(lambda co: json.loads("[" * 100000))
        with self.assertRaises(RecursionError):
            next(nested)

    def test_what_differs_inside(self):
        variable, local = contextvars.ContextVar("variable", default=0), threading.local()
        variable.set(1)
        local.value = 1
        inside = Coroutine(lambda co: co.suspend((variable.get(), getattr(local, "value", None))))
        self.assertEqual(next(inside), (0, None))

    def test_callbacks_of_ctypes(self):
        """They run on the thread's state, which must not be left suspended; since 3.12 on that of the coroutine."""
        int_p = ctypes.POINTER(ctypes.c_int)
        compare_t = ctypes.CFUNCTYPE(ctypes.c_int, int_p, int_p)
        refused = []

        def sorts(co):
            def compare(a, b):
                try:
                    co.suspend("inside")
                except RuntimeError:
                    refused.append(a[0])
                return a[0] - b[0]
            numbers = (ctypes.c_int * 3)(3, 1, 2)
            ctypes.CDLL(None).qsort(numbers, 3, 4, compare_t(compare))
            co.suspend(list(numbers))
        *inside, last = Coroutine(sorts)
        self.assertEqual(last, [1, 2, 3])
        self.assertNotEqual(bool(inside), bool(refused))
        self.assertEqual(bool(inside), sys.version_info >= (3, 12))

    def test_constants(self):
        """A structure declared by the table of constants works."""
        table = acorn.constants()
        if sys.maxsize < 2**32 or sys.platform != "linux":
            self.skipTest("the table is for " + table["target"])
        library = ctypes.CDLL(acorn._acorn._name)
        library.aco_new.restype = ctypes.c_void_p
        library.aco_new.argtypes = [ctypes.c_void_p] * 3
        layout = table["types"]["aco_options_t"]
        options = (ctypes.c_char * layout["size"])()
        flags, size = layout["fields"]["flags"]
        options[flags:flags + size] = (1 << 30).to_bytes(size, sys.byteorder)
        entry = ctypes.cast(library.aco_yield_value, ctypes.c_void_p)
        self.assertIsNone(library.aco_new(entry, None, ctypes.addressof(options)))
        self.assertIn(b"flags", acorn._acorn.aco_error_message())
        options[flags:flags + size] = table["constants"]["ACO_NO_GUARD"].to_bytes(size, sys.byteorder)
        co = library.aco_new(entry, None, ctypes.addressof(options))
        library.aco_state.argtypes = library.aco_destroy.argtypes = [ctypes.c_void_p]
        self.assertEqual(library.aco_state(co), table["constants"]["ACO_STATE_READY"])
        library.aco_destroy(co)


if __name__ == "__main__":
    unittest.main()
