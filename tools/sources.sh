#!/bin/sh
# sources.sh [acorn|all]: prints the libraries' C sources for Linux on x86-64, as paths from the root of the tree: for
# tools that compile them without CMake. acorn: those of libacorn alone. all: also those that need OpenSSL's headers,
# those of acorn_hook, and those of acorn_http, which need -Ithird_party and third_party/llhttp/renamed_*.c.
other='src/tls/ -e src/http/ -e src/libc/'
case ${1:-} in
acorn) other='src/tls/ -e src/http/ -e src/io/ -e src/threads/ -e src/libc/' ;;
all) other=no-such-folder ;;
esac
cd "$(dirname "$0")/.." && find src -name "*.c" | LC_ALL=C sort | grep -v -e src/os/windows -e src/os/ucontext -e src/io/kqueue -e $other
