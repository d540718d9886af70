"""Searches of sim_faults.py and sim_log.py: seeds of a simulation, from one on, until a run fails."""
import collections
import re
import resource
import statistics
import subprocess
import sys

SEED = re.compile(r'^acorn: simulation: seed (\d+): (.*)', re.M)
OVER = 'the process dies by signal 24'  # SIGXCPU: the processor's time is over
ALONE = 10  # seconds of the processor
ENDED = re.compile(r'the process dies by signal (2|15)$')  # from outside: by Ctrl-C, timeout(1) or the limit below

# The number of seeds and why the last one failed, or None for both. is_late: it was ended, and has found nothing yet.
Search = collections.namedtuple('Search', 'seeds why is_late')


def output_within(command, seconds, of_processor=None):
    """(exit status, what it printed to stderr); it is ended when its time is over, or that of the processor."""
    def limit():
        if of_processor:
            resource.setrlimit(resource.RLIMIT_CPU, (of_processor, of_processor + 5))

    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          errors='replace', preexec_fn=limit) as process:
        try:
            _, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            _, errors = process.communicate()
        return process.returncode, errors


def loops(command, start, seed):
    """Whether the run of this seed, which takes milliseconds, needs more than seconds of the processor alone."""
    at = command.index('--seed') + 1, command.index('--runs') + 1
    alone = list(command)
    assert alone[at[0]] == str(start)
    alone[at[0]], alone[at[1]] = str(seed), '1'
    found = SEED.search(output_within(alone, None, ALONE)[1])
    return bool(found and found[2] == OVER)


def search(command, start, seconds=None, of_processor=None):
    """What the command, which begins with the seed `start`, finds in this time. Only a failure that the program has
    seen itself is one, or a run that loops without a call of Acorn, which no program sees: on a busy machine a search
    without a fault may take longer than its time, too."""
    status, errors = output_within(command, seconds, of_processor)
    found = SEED.search(errors)
    if found and found[2] == OVER:
        seed = int(found[1])
        is_found = loops(command, start, seed)
        return Search(seed - start + 1 if is_found else None, 'it loops' if is_found else None, not is_found)
    if found and not ENDED.match(found[2]):
        return Search(int(found[1]) - start + 1, found[2], False)
    if found or status in (-2, -15):
        return Search(None, None, True)
    if status:
        sys.exit(f'{" ".join(command)} ends with {status}:\n{errors[-2000:]}')
    return Search(None, None, False)


def found_in(found, starts, late):
    """The table's columns from `found in` on, of these numbers of seeds."""
    numbers = f'{statistics.median(found):g} | {max(found)}' if found else '- | -'
    return f'{len(found)} of {starts} starts' + (f' ({late} not finished)' if late else '') + f' | {numbers} |'
