"""Searches of sim_faults.py and sim_log.py: seeds of a simulation, from one on, until a run fails."""
import collections
import re
import statistics
import subprocess
import sys

SEED = re.compile(r'^acorn: simulation: seed (\d+): (.*)', re.M)
ENDED = re.compile(r'the process dies by signal (2|15)$')  # from outside: by Ctrl-C, timeout(1) or the limit below

# The number of seeds and why the last one failed, or None for both. is_late: it was ended, and has found nothing yet.
Search = collections.namedtuple('Search', 'seeds why is_late')


def output_within(command, seconds):
    """(exit status, what it printed to stderr); it is ended when its time is over."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          errors='replace') as process:
        try:
            _, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            _, errors = process.communicate()
        return process.returncode, errors


def search(command, start, seconds=None):
    """What the command, which begins with the seed `start`, finds in this time. Only a failure that the program has
    seen itself is one: on a busy machine a search without a fault may take longer than its time, too."""
    status, errors = output_within(command, seconds)
    found = SEED.search(errors)
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
