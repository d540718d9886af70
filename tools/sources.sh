#!/bin/sh
# sources.sh [LIBRARY...]: prints the libraries' C sources for Linux, as paths from the root of the tree: for tools that
# compile them without CMake. Without an argument: those of all libraries. acorn_http's need -Ithird_party and
# third_party/llhttp/renamed_*.c, acorn_tls's OpenSSL.
cd "$(dirname "$0")/.." && for library in "${@:-[a-z_]*}"; do
    awk -v name="$library" '$1 ~ "^" name "(_own)?$" && $2 ~ /^(all|posix|linux)$/ { print $3 }' src/sources.txt
done
