#!/bin/sh
# sources.sh [acorn|all]: prints the libraries' C sources for Linux on x86-64, as paths from the root of the tree: for
# tools that compile them without CMake. acorn: those of libacorn alone. all: also those that need OpenSSL's headers.
other=src/tls/
case ${1:-} in
acorn) other='src/tls/ -e src/io/ -e src/threads/' ;;
all) other=no-such-folder ;;
esac
cd "$(dirname "$0")/.." && ls src/*/*.c | grep -v -e src/os/windows -e src/os/ucontext -e src/io/kqueue -e $other
