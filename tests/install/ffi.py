"""Resumes coroutines from Python by ctypes: two on private stacks, two that share one, with and without own FP
environment."""
import ctypes
import sys

acorn = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
entry = ctypes.CDLL(sys.argv[2]).entry
for name, result, *arguments in [
    ("aco_thread_init", None, ctypes.c_void_p),
    ("aco_create", ctypes.c_void_p, *[ctypes.c_void_p] * 2, ctypes.c_size_t, *[ctypes.c_void_p] * 2),
    ("aco_share_stack_new", ctypes.c_void_p, ctypes.c_size_t),
    ("aco_share_stack_destroy", None, ctypes.c_void_p),
    ("aco_resume", None, ctypes.c_void_p),
    ("aco_destroy", None, ctypes.c_void_p),
    ("aco_get_co", ctypes.c_void_p),
    ("aco_is_main_co", ctypes.c_int, ctypes.c_void_p),
]:
    function = getattr(acorn, name)
    function.restype, function.argtypes = result, arguments

acorn.aco_thread_init(None)
main_co = acorn.aco_create(None, None, 0, None, None)
assert acorn.aco_get_co() == main_co and acorn.aco_is_main_co(main_co) == 1
stacks = [acorn.aco_share_stack_new(0) for _ in range(3)]
sums = [ctypes.c_long(0) for _ in range(4)]
address = ctypes.cast(entry, ctypes.c_void_p).value
coroutines = [acorn.aco_create(main_co, stacks[min(i, 2)], 0, address, ctypes.addressof(sums[i])) for i in range(4)]
for i in range(1, 1001):
    for co in coroutines:
        acorn.aco_resume(co)
    assert all(s.value == i * (i + 1) // 2 for s in sums), (i, sums)
for co in coroutines:
    acorn.aco_resume(co)  # exits
    acorn.aco_destroy(co)
for stack in stacks:
    acorn.aco_share_stack_destroy(stack)
acorn.aco_destroy(main_co)
print("ffi: passed")
