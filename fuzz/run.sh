#!/bin/sh
# run.sh [SECONDS]: builds the fuzz target with clang-19 and lets it search from the corpus for that long (60), in turn with
#   release   share stacks and private ones, undefined-behaviour sanitizer
#   debug     the same in a debug build (ACO_DEBUG=1)
#   address   address and leak sanitizer too; private stacks only
# Builds, inputs that reach something new and findings are kept in build/fuzz. Exit 0: nothing was found, or the tools are missing
# (it says so); 1: a finding, with the command that shows it again.
#
# run.sh --minimise: makes corpus/api anew: as few inputs as reach what the corpus and build/fuzz/corpus reach together.
set -u
cd "$(dirname "$0")/.."
CC=${CC:-clang-19}
dir=build/fuzz
sources="src/*.c src/os/posix*.c"
longest=500

if ! command -v "$CC" >/dev/null; then
    echo "fuzz: skipped: no $CC (Debian: apt-get install clang-19 libclang-rt-19-dev)"
    exit 0
fi
mkdir -p $dir/corpus
printf '#include <stddef.h>\nint LLVMFuzzerTestOneInput(const char *p, size_t n);\nint LLVMFuzzerTestOneInput(const char *p, size_t n) { return !p && n; }\n' >$dir/probe.c
if ! "$CC" -fsanitize=fuzzer,address,undefined $dir/probe.c -o $dir/probe 2>$dir/log; then
    echo "fuzz: skipped: $CC cannot link with -fsanitize=fuzzer,address,undefined (Debian: apt-get install libclang-rt-19-dev; see $dir/log)"
    exit 0
fi

build() { # NAME FLAGS...
    name=$1
    shift
    if ! "$CC" -O1 -g -std=gnu11 -fexceptions -fno-sanitize-recover=all -Iinclude "$@" fuzz/api.c $sources -o "$dir/$name" -pthread -lm >"$dir/$name.log" 2>&1; then
        cat "$dir/$name.log"
        echo "fuzz: $name does not build"
        exit 1
    fi
}

fuzz() { # NAME SECONDS
    "$dir/$1" -max_total_time="$2" -max_len=$longest -timeout=20 -rss_limit_mb=4096 -artifact_prefix="$dir/$1-" -print_final_stats=1 \
        $dir/corpus fuzz/corpus/api >"$dir/$1.log" 2>&1
    status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$dir/$1.log")
    [ $status -eq 0 ] && echo "fuzz: $1: ${runs:-?} inputs in $2 s, nothing found" && return
    grep -v -E '	(NEW|REDUCE|pulse|RELOAD|INITED)' "$dir/$1.log" | tail -n 60
    found=$(sed -n 's/.*Test unit written to //p' "$dir/$1.log")
    echo "fuzz: $1: a finding; show it again, each operation printed, with"
    echo "    FUZZ_TRACE=1 $dir/$1 ${found:-(see $dir/$1.log)}"
    exit 1
}

if [ "${1:-}" = --minimise ]; then
    build release -fsanitize=fuzzer,undefined -DACO_DEBUG=0
    rm -rf $dir/minimised && mkdir $dir/minimised
    "$dir/release" -set_cover_merge=1 -max_len=$longest $dir/minimised fuzz/corpus/api $dir/corpus >$dir/minimise.log 2>&1 || { tail $dir/minimise.log; exit 1; }
    rm -rf fuzz/corpus/api && cp -R $dir/minimised fuzz/corpus/api
    echo "fuzz: $(ls fuzz/corpus/api | wc -l) inputs in fuzz/corpus/api"
    exit 0
fi

seconds=${1:-60}
build release -fsanitize=fuzzer,undefined -DACO_DEBUG=0
build debug -fsanitize=fuzzer,undefined -DACO_DEBUG=1
build address -fsanitize=fuzzer,address,undefined -DACO_DEBUG=0
quarter=$((seconds / 4))
[ $quarter -gt 0 ] || quarter=1
fuzz release $((quarter * 2))
fuzz debug $quarter
fuzz address $quarter
