#!/bin/sh
# sources.sh: prints the library's C sources for Linux on x86-64, as paths from the root of the tree: for tools that
# compile them without CMake.
cd "$(dirname "$0")/.." && ls src/*/*.c | grep -v -e src/os/windows -e src/os/ucontext
