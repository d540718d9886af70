#!/bin/sh
# module.sh CLANG++ DIR LIBRARY...: builds the module `acorn` (aco/acorn.cppm) and a program that imports it, and runs
# the program. Then every public name in namespace aco must stand in the module.
set -eu
compiler=$1 dir=$2
shift 2
root=$(cd "$(dirname "$0")/.." && pwd)
command -v "$compiler" >/dev/null || { echo "skipped: no $compiler"; exit 77; }
mkdir -p "$dir"
cd "$dir"
options="-std=c++20 -I$root/include"
# shellcheck disable=SC2086
"$compiler" $options "$root/include/aco/acorn.cppm" --precompile -o acorn.pcm
"$compiler" -std=c++20 acorn.pcm -c -o acorn.o
"$compiler" -std=c++20 -fmodule-file=acorn=acorn.pcm "$root/tests/module.cpp" acorn.o "$@" -lpthread -o module
./module
sed -n '/^#include/p' "$root/include/aco/acorn.cppm" >all.cpp
# shellcheck disable=SC2086
"$compiler" $options -fsyntax-only -Xclang -ast-list all.cpp >listed
sed -n 's/^using \(aco::[a-z_:]*\);$/\1/p' "$root/include/aco/acorn.cppm" | sort >exported
sed -E 's/aco::(debug|release|in_stack_clang)::/aco::/; s/::(debug|release)::/::/' listed |
    grep -E '^aco::((mt|threads|execution)::)?[a-z_]+$' |
    grep -vxE 'aco::(detail|mt|threads|execution|debug|release|in_stack_clang|aco)' |
    sort -u >public
test -s public
diff exported public || { echo "the module and the headers differ (<: module, >: headers)"; exit 1; }
