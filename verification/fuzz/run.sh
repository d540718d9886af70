#!/bin/sh
# run.sh [SECONDS [TARGET...]]: builds the fuzz targets (all of them) with clang-19 and lets each search from its corpus
# for that long (60), as many at a time as there are processors, in turn with
#   release   share stacks and private ones, undefined-behaviour sanitizer
#   debug     the same in a debug build (ACO_DEBUG=1)
#   address   address and leak sanitizer too; private stacks only
# Builds, inputs that reach something new and findings are kept in build/fuzz. Exit 0: nothing was found, or the tools
# are missing (it says so); 1: a finding, with the command that shows it again.
#
# run.sh --minimise [TARGET...]: makes verification/fuzz/corpus/TARGET.tar.gz anew: as few inputs as reach what it and
# build/fuzz/corpus reach together.
set -u
cd "$(dirname "$0")/../.."
CC=${CC:-clang-19} CXX=${CXX:-clang++-19}
dir=build/fuzz
all="api cpp sizes scheduler http forms tls debug traces service_config"
sources="$(sh tools/sources.sh acorn acorn_threads acorn_io acorn_http acorn_tls acorn_debug acorn_grpc)
    third_party/llhttp/renamed_api.c third_party/llhttp/renamed_llhttp.c"
jobs=$(nproc 2>/dev/null || echo 2)

if ! command -v "$CC" >/dev/null || ! command -v "$CXX" >/dev/null; then
    echo "fuzz: skipped: no $CC (Debian: apt-get install clang-19 libclang-rt-19-dev libssl-dev)"
    exit 0
fi
mkdir -p $dir
cat >$dir/probe.c <<'end'
#include <stddef.h>
int LLVMFuzzerTestOneInput(const char *p, size_t n);
int LLVMFuzzerTestOneInput(const char *p, size_t n) { return !p && n; }
end
if ! "$CC" -fsanitize=fuzzer,address,undefined $dir/probe.c -o $dir/probe 2>$dir/log; then
    echo "fuzz: skipped: $CC cannot link with -fsanitize=fuzzer,address,undefined (see $dir/log)"
    echo "      Debian: apt-get install libclang-rt-19-dev"
    exit 0
fi

flags_of() { # BUILD
    case $1 in
    release) echo -fsanitize=fuzzer,undefined -DACO_DEBUG=0 ;;
    debug) echo -fsanitize=fuzzer,undefined -DACO_DEBUG=1 -DACO_CONFIG_INVARIANTS ;;
    address) echo -fsanitize=fuzzer,address,undefined -DACO_DEBUG=0 ;;
    esac
}

longest_of() { # TARGET
    case $1 in
    tls) echo 2000 ;; # recorded handshakes
    *) echo 500 ;;
    esac
}

# The library, and the targets with it.
build() { # BUILD
    flags="-O1 -g -fexceptions -fno-sanitize-recover=all -Iinclude -Isrc -Itests -Ithird_party $(flags_of "$1")"
    # -z now: lazy binding saves all vector registers, 3 KiB of what may be a small stack.
    link="-Wl,-z,now -pthread"
    rm -rf "$dir/$1" && mkdir -p "$dir/$1"
    for source in $sources; do
        object=$dir/$1/$(echo "${source%.c}" | tr / -).o # base names may be equal
        foreign=
        [ "${source#third_party/}" = "$source" ] || foreign="-w -fno-sanitize=function" # as in CMakeLists.txt
        # shellcheck disable=SC2086
        "$CC" $flags $foreign -std=gnu11 -c "$source" -o "$object" || return 1
    done
    ar rcs "$dir/$1/library.a" "$dir/$1"/*.o
    for target in $all; do
        # shellcheck disable=SC2086
        case $target in
        cpp)
            malloc=
            [ "$1" = address ] || malloc=-DFUZZ_MALLOC # it can be replaced
            "$CXX" $flags $malloc -std=gnu++17 verification/fuzz/cpp.cpp "$dir/$1/library.a" \
                -o "$dir/$target-$1" $link || return 1
            ;;
        *)
            more=
            [ $target != scheduler ] || more=-Wl,--wrap=write
            [ $target != tls ] || more="-lssl -lcrypto"
            "$CC" $flags -std=gnu11 verification/fuzz/$target.c "$dir/$1/library.a" \
                -o "$dir/$target-$1" $link -lm $more || return 1
            ;;
        esac
    done
}

build_all() { # BUILD...
    for b; do
        build "$b" >"$dir/$b.log" 2>&1 &
        eval "pid_$b=$!"
    done
    for b; do
        eval "wait \$pid_$b" && continue
        cat "$dir/$b.log"
        echo "fuzz: $b does not build"
        exit 1
    done
}

fuzz() { # TARGET BUILD SECONDS
    "$dir/$1-$2" -max_total_time="$3" -max_len="$(longest_of "$1")" -timeout=20 -rss_limit_mb=4096 \
        -artifact_prefix="$dir/$1-$2-" -print_final_stats=1 \
        "$dir/corpus/$1" "$dir/kept/$1" >"$dir/$1-$2.log" 2>&1
    status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$dir/$1-$2.log")
    [ $status -eq 0 ] && echo "fuzz: $1, $2: ${runs:-?} inputs in $3 s, nothing found" && return
    grep -v -E '	(NEW|REDUCE|pulse|RELOAD|INITED)' "$dir/$1-$2.log" | tail -n 60
    found=$(sed -n 's/.*Test unit written to //p' "$dir/$1-$2.log")
    echo "fuzz: $1, $2: a finding; show it again, each operation printed, with"
    echo "    FUZZ_TRACE=1 $dir/$1-$2 ${found:-(see $dir/$1-$2.log)}"
    return 1
}

unpack() { # TARGET: its corpus into $dir/kept
    mkdir -p "$dir/corpus/$1" && rm -rf "$dir/kept/$1" && mkdir -p "$dir/kept/$1" &&
        tar xzf "verification/fuzz/corpus/$1.tar.gz" -C "$dir/kept/$1"
}

fuzz_target() { # TARGET SECONDS
    quarter=$(($2 / 4))
    [ $quarter -gt 0 ] || quarter=1
    unpack "$1" || return 1
    fuzz "$1" release $((quarter * 2)) && fuzz "$1" debug $quarter && fuzz "$1" address $quarter
}

if [ "${1:-}" = --minimise ]; then
    shift
    build_all release
    for target in ${*:-$all}; do
        rm -rf $dir/minimised && mkdir -p $dir/minimised && unpack "$target" || exit 1
        "$dir/$target-release" -set_cover_merge=1 -use_counters=0 -max_len="$(longest_of "$target")" \
            $dir/minimised "$dir/kept/$target" "$dir/corpus/$target" >$dir/minimise.log 2>&1 ||
            { tail $dir/minimise.log; exit 1; }
        python3 verification/fuzz/pack.py $dir/minimised "verification/fuzz/corpus/$target.tar.gz" || exit 1
        echo "fuzz: $(ls $dir/minimised | wc -l) inputs in verification/fuzz/corpus/$target.tar.gz"
    done
    exit 0
fi

seconds=${1:-60}
[ $# -eq 0 ] || shift
build_all release debug address
# One worker for each processor; each takes every so manieth target.
worker=0 pids= status=0
while [ $worker -lt "$jobs" ]; do
    (
        mine=0 failed=0
        for target in ${*:-$all}; do
            [ $((mine % jobs)) -ne $worker ] || fuzz_target "$target" "$seconds" || failed=1
            mine=$((mine + 1))
        done
        exit $failed
    ) &
    pids="$pids $!"
    worker=$((worker + 1))
done
for pid in $pids; do
    wait "$pid" || status=1
done
exit $status
