#!/bin/sh
# sources.sh [acorn]: prints the libraries' C sources for Linux on x86-64, as paths from the root of the tree: for tools
# that compile them without CMake. acorn: those of libacorn alone.
other=no-such-folder
[ "${1:-}" = acorn ] && other='src/io/ -e src/threads/'
cd "$(dirname "$0")/.." && ls src/*/*.c | grep -v -e src/os/windows -e src/os/ucontext -e src/io/kqueue -e $other
