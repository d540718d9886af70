#!/bin/sh
# corpus.sh PLUGIN DIR [STEP]: compiles the project's own programs (every STEPth) with the pass, -O0 and -O2, into DIR.
# Then check.py looks for functions that should not have been infected.
set -u
plugin=$1 dir=$2 step=${3:-1}
root=$(cd "$(dirname "$0")/../../.." && pwd)
rm -rf "$dir"
mkdir -p "$dir"

unit() { # FILE LEVEL
    name=$dir/$(echo "${1#"$root"/}" | tr ./ __)$2
    case $1 in *.cpp) compiler="clang++-19 -std=c++20" ;; *) compiler="clang-19 -std=gnu11" ;; esac
    APN_REPORT=$name.report $compiler $2 -fexceptions -D_GNU_SOURCE -w -I"$root/include" -I"$root/src" \
        -I"$root/tests" -I"$root/bench" \
        -fplugin="$plugin" -fpass-plugin="$plugin" -S -emit-llvm "$1" -o "$name.ll" 2>"$name.errors" ||
        echo "left out: $(basename "$1"): $(grep -m 1 -E 'error|fatal' "$name.errors")"
}

number=0
for file in "$root"/tests/*.c "$root"/tests/*.cpp "$root"/examples/*.c "$root"/examples/*.cpp \
    "$root"/bench/*.c "$root"/bench/*.cpp \
    $(sh "$root/tools/sources.sh" acorn acorn_threads acorn_io | sed "s,^,$root/,") "$root"/tools/apn/tests/*.cpp; do
    number=$((number + 1))
    [ $((number % step)) -eq 0 ] || continue
    unit "$file" -O0 & # two at a time
    unit "$file" -O2
    wait
done
python3 "$root/tools/apn/tests/check.py" "$dir"/*.ll
