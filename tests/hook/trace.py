"""A program's system calls under strace, and which of them can block the thread that runs its tasks."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

CALLS = ('execve,read,write,readv,writev,pread64,pwrite64,preadv,pwritev,recvfrom,recvmsg,sendto,sendmsg,connect,'
         'accept,accept4,socket,socketpair,fcntl,poll,ppoll,select,pselect6,epoll_wait,epoll_pwait,epoll_pwait2,pause,'
         'nanosleep,clock_nanosleep,flock,fsync,fdatasync,openat,futex,wait4,waitid,rt_sigtimedwait,'
         # the same calls of 32-bit programs
         '?fcntl64,?_newselect,?ppoll_time64,?pselect6_time64,?clock_nanosleep_time64,?futex_time64')
# The scheduler itself sleeps while nothing is polled: by clock_nanosleep() until a time. FUTEX_WAIT with 2 waits for a
# mutex of the C library: the pool's, which no thread holds while it waits for something else.
WAITS = re.compile(r'(clock_nanosleep(?:_time64)?\((?!CLOCK_MONOTONIC, TIMER_ABSTIME)|nanosleep|pause|'
                   r'rt_sigtimedwait|wait4|waitid|futex(?:_time64)?\([^)]*FUTEX_WAIT(?!_PRIVATE, 2, NULL))')
POLLS = re.compile(r'(poll|ppoll(?:_time64)?)\(.*, (-?\d+|NULL|\{[^}]*\})(, NULL, \d+)?\) +=')
SELECTS = re.compile(r'(p?select6?(_time64)?|_newselect)\(')
NEW = re.compile(r'(socket|accept4?)\(.* = \d+<([^>]*)>')
PAIR = re.compile(r'socketpair\(.*<([^>]*)>, \d+<([^>]*)>\]')
FLAGS = re.compile(r'fcntl(?:64)?\(\d+<([^>]*)>, F_SETFL, (.*)\) += 0')
MOVES = re.compile(r'(read|write|readv|writev|recvfrom|recvmsg|sendto|sendmsg|connect|accept4?)\(\d+<([^>]*)>')
NO_WAIT = re.compile(r'MSG_DONTWAIT|MSG_ERRQUEUE|MSG_OOB')


def available():
    """Whether strace is here and may trace."""
    return shutil.which('strace') and subprocess.run(['strace', '-o', os.devnull, 'true'], check=False,
                                                     stderr=subprocess.DEVNULL).returncode == 0


def run(command, limit_s):
    """Runs the program: its exit status, and the calls of its first thread, a line each."""
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, 'trace')
        status = subprocess.run(['strace', '-ff', '-y', '--seccomp-bpf', '-e', 'trace=' + CALLS, '-o', trace, *command],
                                check=False, timeout=limit_s).returncode
        threads = [path.read_text('utf-8', 'replace') for path in pathlib.Path(folder).iterdir()]
    [first] = [calls for calls in threads if calls.startswith('execve(')]
    return status, first.split('\n')


def blocking(lines, path=None):
    """The calls that could block, and how often the thread polled. Sockets are told apart by their inodes. `path`:
    files there must be left to other threads."""
    found, polls, non_blocking, harmless = [], 0, set(), set()
    for line in lines:
        if ' = -1 EINVAL ' in line or line.startswith(('execve(', 'write(1<', 'write(2<')): # the test itself
            continue
        polls += line.startswith('epoll_')
        new, pair, flags, moves, poll = (r.match(line) for r in (NEW, PAIR, FLAGS, MOVES, POLLS))
        if new and 'AF_NETLINK' in line:
            harmless.add(new[2]) # the kernel answers at once
        elif new and 'SOCK_NONBLOCK' in line:
            non_blocking.add(new[2])
        elif pair and 'SOCK_NONBLOCK' in line:
            non_blocking |= {pair[1], pair[2]}
        elif flags:
            (non_blocking.add if 'O_NONBLOCK' in flags[2] else non_blocking.discard)(flags[1])
        can_block = bool(WAITS.match(line)) or bool(poll and poll[2] != '0')
        can_block |= bool(SELECTS.match(line)) and '{tv_sec=0, tv_' not in line.replace('usec', '').replace('nsec', '')
        if moves and moves[2].startswith(('socket:', 'pipe:')):
            can_block |= moves[2] not in non_blocking | harmless and not NO_WAIT.search(line)
        can_block |= bool(path and path in line and not line.startswith('fcntl'))
        if can_block:
            found.append(line)
    return found, polls
