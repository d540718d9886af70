"""A program's system calls under strace, and which of them can block the thread that runs its tasks."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

# What never waits for another process, the network or a lock. Calls that are neither here nor judged below are
# reported, so that none is forgotten. Those on names of files are here: the hooks leave them to libc.
HARMLESS = set("""
    access alarm arch_prctl bind brk chmod clone clone3 close dup dup2 dup3 epoll_create1 epoll_ctl eventfd2 exit_group
    faccessat2 fchmod fchown fstat fstatfs ftruncate getcwd getdents64 getegid geteuid getgid getpeername getpgrp
    getpid getppid getrandom getrlimit getrusage getsockname getsockopt gettid getuid ioctl io_uring_register
    io_uring_setup kill listen lseek madvise mincore mkdir mknod mknodat mmap mprotect mremap munmap newfstatat pipe
    pipe2 prctl prlimit64 process_madvise process_vm_readv process_vm_writev readlink rename
    rmdir rseq rt_sigaction rt_sigprocmask rt_sigreturn
    sched_getaffinity sched_yield set_robust_list set_tid_address setitimer setsockopt shutdown sigaltstack statx
    sysinfo tgkill times umask uname unlink
    _llseek fstat64 fstatat64 ftruncate64 getegid32 geteuid32 getgid32 getuid32 fchown32 mmap2 set_thread_area
    sigreturn stat64 lstat64 ugetrlimit statfs64 fstatfs64""".split())
# The poller's, and the scheduler's, which sleeps until a time while nothing is polled.
POLLER = re.compile(r'epoll_p?wait2?\(|io_uring_enter\(|clock_nanosleep(_time64)?\(CLOCK_MONOTONIC, TIMER_ABSTIME')
# Calls that wait only if their arguments say so. FUTEX_WAIT with 2 waits for a mutex of the C library: the pool's,
# which no thread holds while it waits for something else.
TRIES = re.compile(r'futex(_time64)?\(.*(FUTEX_WAKE|FUTEX_CMP_REQUEUE_PRIVATE|FUTEX_WAIT_PRIVATE, 2, NULL)|'
                   r'fcntl(64)?\((?!.*SETLKW)|'
                   r'flock\(.*LOCK_(NB|UN)|wait(4|id)\(.*WNOHANG|p(read|write)v2\(.*RWF_NOWAIT')
POLLS = re.compile(r'(poll|ppoll(?:_time64)?)\(.*, (-?\d+|NULL|\{[^}]*\})(, NULL, \d+)?\) +=')
SELECTS = re.compile(r'(p?select6?(_time64)?|_newselect)\(')
NEW = re.compile(r'(socket|accept4?)\(.* = \d+<([^>]*)>')
PAIR = re.compile(r'(?:socketpair|pipe2)\(.*<([^>]*)>, \d+<([^>]*)>\]')
FLAGS = re.compile(r'fcntl(?:64)?\(\d+<([^>]*)>, F_SETFL, (.*)\) += 0')
MOVES = re.compile(r'(?:p?readv?(?:64)?|p?writev?(?:64)?|recv(?:from)?|recvm?msg(?:_time64)?|send(?:to)?|sendm?msg|'
                   r'sendfile(?:64)?|connect|accept4?|f(?:data)?sync)\(\d+<([^>]*)>')
OPENS = re.compile(r'open(at)?\(')
NO_CALL = re.compile(r'(?![a-z_]\w*\()|execve\(|write\([12]<') # or one of the test itself
NO_WAIT = re.compile(r'MSG_DONTWAIT|MSG_ERRQUEUE|MSG_OOB')


def available():
    """Whether strace is here and may trace."""
    return shutil.which('strace') and subprocess.run(['strace', '-o', os.devnull, 'true'], check=False,
                                                     stderr=subprocess.DEVNULL).returncode == 0


def run(command, limit_s):
    """Runs the program: its exit status, and the calls of its first thread, a line each."""
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, 'trace')
        status = subprocess.run(['strace', '-ff', '-y', '-o', trace, *command], check=False,
                                timeout=limit_s).returncode
        threads = [path.read_text('utf-8', 'replace') for path in pathlib.Path(folder).iterdir()]
    [first] = [calls for calls in threads if calls.startswith('execve(')]
    return status, first.split('\n')


class Descriptors:
    """Which sockets and pipes are non-blocking; told apart by their inodes."""
    def __init__(self):
        self.non_blocking, self.harmless = set(), set()

    def note(self, line):
        new, pair, flags = (r.match(line) for r in (NEW, PAIR, FLAGS))
        if new and 'AF_NETLINK' in line:
            self.harmless.add(new[2]) # the kernel answers at once
        elif new and 'SOCK_NONBLOCK' in line:
            self.non_blocking.add(new[2])
        elif pair and re.search('SOCK_NONBLOCK|O_NONBLOCK', line):
            self.non_blocking |= {pair[1], pair[2]}
        elif flags:
            (self.non_blocking.add if 'O_NONBLOCK' in flags[2] else self.non_blocking.discard)(flags[1])

    def may_block(self, name):
        return name.startswith(('socket:', 'pipe:')) and name not in self.non_blocking | self.harmless


def can_block(line, descriptors, path):
    """Whether the call could block, or is not known here."""
    moves, poll = MOVES.match(line), POLLS.match(line)
    if line.split('(')[0] in HARMLESS | {'socket', 'socketpair'} or POLLER.match(line) or TRIES.match(line):
        return False
    if poll:
        return poll[2] != '0'
    if SELECTS.match(line):
        return '{tv_sec=0, tv_' not in line.replace('usec', '').replace('nsec', '')
    if moves and descriptors.may_block(moves[1]):
        return not NO_WAIT.search(line)
    return not (moves or OPENS.match(line)) or bool(path and path in line)


def blocking(lines, path=None):
    """The calls that could block, and how often the thread polled. `path`: files there are other threads' business."""
    found, descriptors = [], Descriptors()
    for line in lines:
        if NO_CALL.match(line) or ' = -1 EINVAL ' in line or ' = -1 EBADF ' in line:
            continue
        descriptors.note(line)
        if can_block(line, descriptors, path):
            found.append(line)
    return found, sum(line.startswith('epoll_') for line in lines)
