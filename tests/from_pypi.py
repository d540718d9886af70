"""Packages from PyPI for tests, in a virtual environment that is kept."""
import os
import subprocess
import sys


def enter(folder, *packages):
    """Runs the program again by the Python of the environment in `folder`, which it makes first. Returns if the
    packages cannot be had."""
    python = os.path.join(folder, 'bin', 'python')
    done = os.path.join(folder, 'installed')
    if not os.path.exists(done):
        made = subprocess.run([sys.executable, '-m', 'venv', folder], check=False).returncode == 0 and \
            subprocess.run([python, '-m', 'pip', '-q', '--retries', '1', 'install', *packages],
                           check=False).returncode == 0
        if not made:
            return
        with open(done, 'w', encoding='utf-8'):
            pass
    os.execv(python, [python, *sys.argv])
