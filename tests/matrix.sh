#!/bin/sh
# matrix.sh [--nightly] [NAME...]: builds and runs the tests once for each compiler and option below (or those named), and
# prints one line for each, a summary, and the names of what was skipped and why. Exit 1 when anything failed.
set -u
cd "$(dirname "$0")/.."
nightly=OFF
[ "${1:-}" = --nightly ] && nightly=ON && shift
wanted=$*
jobs=$(nproc 2>/dev/null || echo 2)
passed=0 failed=0 skipped=0 failures= skips= reasons=

known=
wants() { # NAME
    known="$known $1"
    case " $wanted " in "  " | *" $1 "*) return 0 ;; *) return 1 ;; esac
}

skip() { # NAME REASON
    skipped=$((skipped + 1))
    skips="$skips
  $1: $2"
    echo "$1: skipped: $2"
}

# What the log of a failure says, to be printed once more at the end: of an output that is cut, the end is what remains.
say_why() { # NAME LOG
    reasons="$reasons
$1:
$(grep -E '\*\*\*|FAIL|ERROR|[Ee]rror|warning:|not so|expected|signal|^ +#[0-9]+ |: fuzz/|^fuzz/' "$2" | grep -v ' tests failed out of ' | head -n 14 | cut -c 1-160)"
}

# Of two rows that are much alike one is run each day, and each day some of each kind; nightly, or asked for by name, both.
# DAY=N in the environment: the rows of the year's Nth day.
is_for_another_day() { # NAME
    case $1 in
    gcc-O0 | clang-O3-lto | gcc-m32-O2 | gcc-m32-pic | clang14-O2 | gcc-O1-frames | clang-ubsan | clang-tsan | gcc-asan | clang-avx* | clang-apn) parity=1 ;;
    clang-O0 | gcc-O3-lto | clang-m32-O2 | gcc-m32-O0 | gcc-hardened | gcc-ubsan | gcc-tsan | clang-asan | gcc-avx* | clang-msan) parity=0 ;;
    *) return 1 ;;
    esac
    [ $nightly = OFF ] && [ -z "$wanted" ] && [ $((1${DAY:-$(date +%j)} % 2)) -ne $parity ]
}

# row NAME CC CXX FLAGS [CTEST-ARGUMENT...]; without the tests whose names begin as one of the words of $left_out does.
left_out=
row() {
    name=$1 cc=$2 cxx=$3 flags=$4
    shift 4
    [ -z "$left_out" ] || set -- "$@" -E "^($(echo "$left_out" | tr ' ' '|'))"
    wants "$name" || return 0
    is_for_another_day "$name" && echo "$name: another day (all rows: make nightly)" && return 0
    command -v "$cc" >/dev/null && command -v "$cxx" >/dev/null || { skip "$name" "no $cc or $cxx"; return 0; }
    dir=build/test/$name
    mkdir -p "$dir"
    if ! printf '#include <vector>\nint main() { return 0; }\n' | "$cxx" $flags -x c++ - -o "$dir/probe" 2>"$dir/log"; then
        skip "$name" "$cxx cannot build with $flags (see $dir/log)"
        return 0
    fi
    case $cc in *clang*) ar=llvm-ar-${cc##*-} linker="-fuse-ld=lld" ;; *) ar=gcc-ar linker= ;; esac
    case $flags in *-flto*) ;; *) ar=ar linker= ;; esac
    ar=$(command -v $ar || command -v ar)
    start=$(date +%s)
    if ! { cmake -S . -B "$dir" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" \
        -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_EXE_LINKER_FLAGS="$linker" -DCMAKE_SHARED_LINKER_FLAGS="$linker" \
        -DCMAKE_AR="$ar" -DCMAKE_RANLIB=/bin/true -DACORN_WERROR=ON -DACORN_NIGHTLY="$nightly" $width &&
        cmake --build "$dir" -j "$jobs"; } >"$dir/log" 2>&1; then
        echo "$name: does not build"
        tail -n 30 "$dir/log"
        failed=$((failed + 1)) failures="$failures $name(build)"
        say_why "$name" "$dir/log"
        return 0
    fi
    set -f
    for word in $left_out; do
        if ! ctest --test-dir "$dir" -N -R "^($word)" | grep -q '^ *Test *#'; then
            echo "$name: no test is left out by $word"
            failed=$((failed + 1)) failures="$failures $name($word)"
        fi
    done
    set +f
    missing=$(sed -n "s/^-- skipped: /  $name: /p" "$dir/log")
    [ -z "$missing" ] || skips="$skips
$missing"
    (cd "$dir" && ctest -j "$jobs" --output-on-failure "$@") >"$dir/ctest.log" 2>&1
    status=$?
    total=$(sed -n 's/.*tests passed, \([0-9]*\) tests failed out of \([0-9]*\).*/\1 \2/p' "$dir/ctest.log")
    bad=${total% *} all=${total#* }
    not_run=$(sed -n '/did not run:/,$s/^\t *[0-9]* - \(.*\) (Skipped)$/\1/p' "$dir/ctest.log")
    [ -z "$not_run" ] || skips="$skips
  $name: $(echo $not_run): $(sed -n 's/^skipped: //p' "$dir/Testing/Temporary/LastTest.log" | sort -u | paste -sd ';' -)"
    count=$(echo $not_run | wc -w)
    passed=$((passed + ${all:-0} - ${bad:-0} - count)) skipped=$((skipped + count)) failed=$((failed + ${bad:-0}))
    if [ $status -ne 0 ] || [ -z "$total" ]; then
        [ -n "$total" ] && [ "${bad:-0}" -gt 0 ] || failed=$((failed + 1))
        failures="$failures $name"
        sed -n '/\*\*\*/,/^ *Start\|^$/p' "$dir/ctest.log" | head -n 120
        tail -n 15 "$dir/ctest.log"
        say_why "$name" "$dir/ctest.log"
    fi
    echo "$name: ${all:-0} tests, ${bad:-?} failed, $count skipped ($cc $flags, $(($(date +%s) - start)) s)"
}

# How much of the suite a row builds (tests/CMakeLists.txt); nightly, all of it everywhere.
wide=
medium="-DACORN_STANDARDS=20"
narrow="-DACORN_STANDARDS=20 -DACORN_VARIANTS=release;shared_fp -DACORN_CXX_FULL=OFF"
sanitized="-DACORN_STANDARDS=20 -DACORN_VARIANTS=release"
[ $nightly = OFF ] || medium= narrow= sanitized=

width=$wide
row gcc-O2 gcc g++ "-O2 -g"
row clang-O2 clang-19 clang++-19 "-O2 -g"
width=$medium
row gcc-O0 gcc g++ "-O0 -g"
row clang-O0 clang-19 clang++-19 "-O0 -g"
row gcc-m32-O2 gcc g++ "-m32 -O2 -g"
width=$narrow
row gcc-O3-lto gcc g++ "-O3 -flto"
row clang-O3-lto clang-19 clang++-19 "-O3 -flto"
row gcc-m32-O0 gcc g++ "-m32 -O0 -g"
row gcc-m32-pic gcc g++ "-m32 -O2 -fPIC -msse2"
width=$medium
row clang-m32-O2 clang-19 clang++-19 "-m32 -O2 -g"
width=$narrow
row clang14-O2 clang-14 clang++-14 "-O2 -g"
row gcc-hardened gcc g++ "-O2 -fPIE -pie -fcf-protection -fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=3"
width="$narrow -DACORN_DYNAMIC_TLS=ON"
row gcc-O1-frames gcc g++ "-O1 -g -fno-omit-frame-pointer -fstack-protector-all"
width=$sanitized
row gcc-ubsan gcc g++ "-O1 -g -fsanitize=undefined -fno-sanitize-recover=all"
row clang-ubsan clang-19 clang++-19 "-O1 -g -fsanitize=undefined -fno-sanitize-recover=all"
width=$sanitized
# What the sanitizers cannot serve is left out (docs/sanitizers.md):
#   all    what counts bytes of stacks, calls of the fast path or memory: probe.*, slab.default (ASan: slab.threads and
#          example.sizes)
#   TSan   what goes on in a child process: fork; handlers, which it calls later: generator_signals, found.stacks; 8128 fibers:
#          model.*.scale; too slow for the tests' time limits, next to others: threads, cpp_native, fuzz.random with gcc, slab.threads
#          with clang
#   ASan   what is copied, or looks at what was: copying, model, misuse, unwind, alloc_failure, probe.live, redzone.run,
#          example.tutorial_1; what nothing may stand on stderr beside: example.synopsis, example.tutorial_5; its own handler of
#          SIGSEGV, and signals on its own stack: overflow, signals; a fork in a signal handler, where clang's waits for a lock that
#          it interrupted itself with: found.stacks
#   MSan   C++, whose library is not instrumented; frames that overflow on purpose: misuse; ACO_ENTRY, which counts bytes
export TSAN_OPTIONS=allocator_may_return_null=1 ASAN_OPTIONS=allocator_may_return_null=1 MSAN_OPTIONS=allocator_may_return_null=1
no_tsan='probe\.(own-fp|shared-fp|pic-frame-pointer) fork\. found\.stacks model\..*\.scale slab\.default generator_signals'
no_asan='probe slab\.threads example\.synopsis example\.tutorial_[15] copying model\. misuse unwind alloc_failure redzone\.run'
no_asan="$no_asan overflow signals"
left_out="$no_tsan slab\\.threads"
row clang-tsan clang-19 clang++-19 "-O1 -g -fsanitize=thread"
left_out="$no_tsan threads cpp_native fuzz\\.random"
row gcc-tsan gcc g++ "-O1 -g -fsanitize=thread"
left_out="$no_asan example\\.sizes found\\.stacks"
row clang-asan clang-19 clang++-19 "-O1 -g -fsanitize=address"
left_out="$no_asan example\\.sizes"
row gcc-asan gcc g++ "-O1 -g -fsanitize=address"
left_out=
width="$sanitized -DACORN_CXX_FULL=OFF"
msan='sanitizers|api|copying|fork|guard|native\.|cancel|local|generator|scheduler|pool|threads|save_area|measure|model\..*\.[123]|allocator|migration|signals'
row clang-msan clang-19 clang++-19 "-O1 -g -fsanitize=memory" -R "^($msan|assertions|found\.release|overflow)" -E "_failure|migration.*scale"
unset TSAN_OPTIONS ASAN_OPTIONS MSAN_OPTIONS
width=$narrow
if grep -q avx512f /proc/cpuinfo 2>/dev/null; then
    row gcc-avx512 gcc g++ "-O2 -march=x86-64-v4"
    row clang-avx512 clang-19 clang++-19 "-O2 -march=x86-64-v4"
elif grep -q avx2 /proc/cpuinfo 2>/dev/null; then
    row gcc-avx2 gcc g++ "-O2 -march=x86-64-v3"
    row clang-avx2 clang-19 clang++-19 "-O2 -march=x86-64-v3"
fi

# step NAME SHOWN COMMAND...: runs it as one test. Of a failed one those lines of its log are shown that fit SHOWN.
step() {
    name=$1 shown=$2 start=$(date +%s) log=build/test/$1.log
    shift 2
    mkdir -p build/test
    if "$@" >"$log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1)) failures="$failures $name"
        grep -E "$shown" "$log" | tail -n 60
        say_why "$name" "$log"
    fi
    echo "$name: $(tail -n 1 "$log") ($(($(date +%s) - start)) s)"
}

# The compiler helper: its own tests, and the suite built with it.
apn_tests() {
    corpus=8
    [ $nightly = OFF ] || corpus=1
    make --no-print-directory apn && cmake -DAPN_CORPUS_STEP=$corpus build/apn && ctest --test-dir build/apn -j "$jobs" --output-on-failure
}
if ! command -v clang-19 >/dev/null; then
    ! wants apn || skip apn "no clang-19"
elif wants apn; then
    step apn . apn_tests
fi
if [ -e build/apn/apn.so ]; then
    width=$sanitized
    row clang-apn clang-19 clang++-19 "-O2 -g -fplugin=$PWD/build/apn/apn.so -fpass-plugin=$PWD/build/apn/apn.so"
elif wants clang-apn; then
    skip clang-apn "the compiler helper is not built (apn)"
fi

# The C tests of the first row's build under Valgrind, which must stay silent: a sample, nightly most of them. Left out: those of
# bytes, time and the processor's registers; pool, which overflows stacks on purpose; native, where Valgrind refuses a mapping by
# EINVAL and does not round as x87 does.
valgrind_rows() {
    wants valgrind || return 0
    command -v valgrind >/dev/null || { skip valgrind "no valgrind"; return 0; }
    sample="examples/example_synopsis examples/example_tutorial_3 tests/test_copying_release tests/test_cancel_release"
    [ $nightly = OFF ] || sample="$(cd build/test/gcc-O2 && echo examples/example_tutorial_[0-6] examples/example_reset) tests/test_sanitizers_lives \
        $(for test in api copying cancel local scheduler scheduler_model save_area measure entry guard; do
            for program in build/test/gcc-O2/tests/test_${test}_release*; do echo "tests/$(basename "$program")"; done
        done)"
    good=0 start=$(date +%s)
    for program in $sample; do
        case $program in *native* | *model*) argument="1 5000" ;; *lives) argument=lives ;; *) argument= ;; esac
        for tool in memcheck helgrind; do
            [ $nightly = ON ] || [ $tool = memcheck ] || continue
            case $tool in memcheck) options="--leak-check=full --errors-for-leak-kinds=definite" ;; *) options= ;; esac
            # shellcheck disable=SC2086
            if valgrind --tool=$tool $options --quiet --error-exitcode=99 "build/test/gcc-O2/$program" $argument >build/test/valgrind.log 2>&1; then
                good=$((good + 1))
            else
                failed=$((failed + 1)) failures="$failures $tool/$program"
                tail -n 30 build/test/valgrind.log
                say_why "$tool/$program" build/test/valgrind.log
            fi
        done
    done
    passed=$((passed + good))
    echo "valgrind: $good programs clean ($(($(date +%s) - start)) s)"
}
valgrind_rows

# Other processors, emulated: one compiler and the core's tests for each. All of it is `make test-platforms`.
if wants platforms; then
    step platforms '^[^s]|^s[^e]' make --no-print-directory test-platforms-quick
    grep -E "^[a-z0-9_-]+ .*skipped" build/test/platforms.log
fi

# Static analysis, which installs its tools.
if wants lint; then
    step lint ': (warning|error|style|performance|portability):|^stale|^lint:' make --no-print-directory lint
    for tool in $(sed -n 's/^lint: \(.*\): skipped.*/\1/p' build/test/lint.log); do
        skip "lint.$tool" "it is not here"
    done
fi

# The compiled switches against theorems, the model of their interleavings, and seeded faults; on every processor nightly.
proofs="prove-quick prove-model"
[ $nightly = OFF ] || { proofs="$proofs prove"; export MODEL="--states 3000"; }
# shellcheck disable=SC2086
! wants prove || step prove 'FAILED|NOT FOUND|ERROR|rror:' make --no-print-directory $proofs

# Every line of the core that no test runs has an explanation.
if wants coverage && [ "$nightly$wanted" != OFF ]; then
    step coverage 'not run|run or gone|without a reason|FAILED|rror' make --no-print-directory coverage
fi

# The fuzz targets, for a minute each or, nightly, an hour.
seconds=60
[ $nightly = OFF ] || seconds=3600
if ! command -v clang-19 >/dev/null; then
    ! wants fuzz || skip fuzz "no clang-19"
elif wants fuzz; then
    step fuzz . sh verification/fuzz/run.sh $seconds
fi

for name in $wanted; do
    case " $known " in *" $name "*) ;; *) failed=$((failed + 1)) failures="$failures $name(no such row)" ;; esac
done

echo
if [ -n "$skips" ]; then
    echo "skipped:$skips"
fi
[ -z "$failures" ] || echo "failed:$failures$reasons"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
