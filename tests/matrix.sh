#!/bin/sh
# matrix.sh TIER|ROW...: runs the tests, and prints a line for each row, what was skipped and why, what failed, and a
# closing line. A row is the test suite built with one compiler and one set of options, or another check with a name.
# The tiers are lists of rows: check, test, ci, all, nightly, sim, sim-nightly (docs/testing.md). Row:WIDTH builds more
# or less of the suite than the row's own width. Exit 1: something failed. A row's build is kept in build/test/ROW.
set -u
cd "$(dirname "$0")/.."
jobs=$(nproc 2>/dev/null || echo 2)
# Rows compile much that others, or an earlier run in another clone, have compiled. So the cache goes by paths in the
# clone, and debug information may name another clone's folder.
if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
    export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=10G
fi

# ---- data ----

# The suite's rows: name, compiler, width, set of tests left out, flags. A -DACORN_... among them is CMake's;
# read_row says what capitals stand for.
suite_rows='
gcc-O2         gcc       wide       -           -O2 -g
gcc-O0         gcc       medium     -           -O0 -g
gcc-O1-frames  gcc       narrow     -           FRAMES
gcc-O3-lto     gcc       narrow     -           -O3 -flto
gcc-avx        gcc       narrow     -           WIDEST_VECTORS
gcc-hardened   gcc       narrow     -           -DACORN_DYNAMIC_TLS=ON HARDENED
gcc-m32-O2     gcc       medium     -           -m32 -O2 -g
gcc-m32-O0     gcc       narrow     -           -m32 -O0 -g -msse2
gcc-m32-pic    gcc       medium     -           -m32 -O2 -g -fPIC
gcc-ubsan      gcc       sanitized  -           -O1 -g -fsanitize=undefined -fno-sanitize-recover=all
gcc-tsan       gcc       sanitized  tsan_gcc    -O1 -g -fsanitize=thread
gcc-asan       gcc       sanitized  asan_gcc    GCC_ASAN
clang-O2       clang-19  wide       -           -O2 -g
clang-O0       clang-19  medium     -           -O0 -g
clang-O3-lto   clang-19  narrow     -           -O3 -flto
clang-avx      clang-19  narrow     -           WIDEST_VECTORS
clang-m32-O2   clang-19  medium     -           -m32 -O2 -g
clang-ubsan    clang-19  sanitized  -           -O1 -g -fsanitize=undefined -fno-sanitize-recover=all
clang-tsan     clang-19  sanitized  tsan_clang  -O1 -g -fsanitize=thread
clang-asan     clang-19  sanitized  asan_clang  -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined
clang-msan     clang-19  msan       msan        -DACORN_HTTP=OFF -DACORN_HOOK=OFF -O1 -g -fsanitize=memory
clang-apn      clang-19  sanitized  -           APN
clang14-O2     clang-14  narrow     -           -O2 -g
clang14-avx    clang-14  narrow     -           WIDEST_VECTORS
gcc-long       gcc       long       -           -O2 -g
clang-long     clang-19  long       -           -O2 -g
gcc-m32-long   gcc       long       -           -m32 -O2 -g
'

# `ci` has a row once where one compiler tests it as well as the other: -O0, LTO and wide vectors by gcc or clang; -m32
# with PIC, where registers are scarcest; ASan with the compiler that `test` does not use (TSan stays with `test`'s).
# Rows whose subject is an option run the fast tests only, those whose subject is the switch without HTTP and hooks.
# coverage is in `nightly`.
tier_rows() { # TIER
    case $1 in
    check) echo gcc-O2:check ;;
    test) echo gcc-O2:check clang-O2:sample gcc-asan:sample clang-tsan:sample lint ;;
    ci) echo gcc-O2:ends clang-O2:narrow gcc-O0:core clang-O3-lto:core gcc-hardened:sample gcc-m32-pic:narrow \
        clang14-avx:core clang-asan clang-msan apn clang-apn:core valgrind platforms litmus prove fuzz \
        reverted sim-faults sim-log ;;
    all) echo "$suite_rows" | sed -n '/^[^ ]*-\(long\|apn\) /d; s/^\([^ ]\{1,\}\) .*/\1:full/p'
        echo lint apn clang-apn:full languages valgrind-whole platforms litmus prove fuzz ;;
    nightly) echo gcc-long clang-long gcc-m32-long clang-tsan:stress apn-whole languages valgrind-whole \
        platforms-whole prove-whole litmus-long fuzz-long soak coverage lint-deep packages site mutants ;;
    sim) echo gcc-O2:sim sim-faults sim-log ;; # of it `ci` has all but the debug variant, which `check` has
    sim-nightly) echo gcc-long:sim-long sim-faults-long sim-log-long ;;
    *) echo "$1" ;;
    esac
}

# How much of the suite is built (tests/CMakeLists.txt) ...
width_options() { # WIDTH
    case $1 in
    check | sim) echo "-DACORN_VARIANTS=release;debug -DACORN_STANDARDS=20 -DACORN_CXX_DEBUG=OFF -DACORN_QUICK=ON" ;;
    sim-long) width_options sim && echo -DACORN_NIGHTLY=ON ;;
    ends) # `check` has the debug variant, other rows C++20
        echo "-DACORN_VARIANTS=release;shared_fp;no_inline -DACORN_STANDARDS=11;17;23 -DACORN_CXX_DEBUG=OFF" ;;
    medium) echo "-DACORN_STANDARDS=20 -DACORN_TESTS_ONCE=OFF -DACORN_CXX_DEBUG=OFF" ;;
    narrow) echo "-DACORN_VARIANTS=release;shared_fp" && width_options medium && echo -DACORN_CXX_FULL=OFF ;;
    sanitized) echo "-DACORN_VARIANTS=release" && width_options medium ;;
    sample) width_options msan && echo -DACORN_QUICK=ON ;;
    core) width_options sample && echo "-DACORN_HTTP=OFF -DACORN_HOOK=OFF" ;;
    msan) width_options sanitized && echo -DACORN_CXX_FULL=OFF ;;
    long) echo -DACORN_NIGHTLY=ON ;;
    stress) width_options sample && echo -DACORN_NIGHTLY=ON ;;
    esac
}
# ... and which of its tests run.
width_tests() { # WIDTH
    case $1 in
    check | sample | core) echo -L ^fast$ ;;
    sim | sim-long) echo -L ^sim$ ;;
    stress) echo -R "^threads_[a-z]*\.long$" ;;
    esac
}

# What a sanitizer cannot serve is left out (docs/sanitizers.md). Each word is the beginning of tests' names.
#   all    what counts bytes of stacks, calls of the fast path or memory: probe.*, slab.default, example.sizes (ASan:
#          slab.threads)
#   TSan   what goes on in a child process: fork. Handlers, which it calls later: generator_signals, found.stacks. 8128
#          fibers: model.*.scale. Minutes: other seeds of model.*. Too slow for the time limits: threads,
#          threads_failure, cpp_coroutine, cpp_generator and fuzz.random with gcc, slab.threads with clang
#   ASan   what is copied, or looks at what was: copying, model, misuse, unwind, alloc_failure, probe.live, redzone.run,
#          example.tutorial_1. What nothing may stand on stderr beside: example.synopsis, example.tutorial_5. Signals
#          on its own stack: signals. A fork in a signal handler, where clang's waits for a lock that it interrupted
#          itself with: found.stacks
#   MSan   C++: its library is not instrumented. Frames that overflow on purpose: misuse. ACO_ENTRY, which counts bytes.
#          Here the words name what is run
tests_left_out() { # SET
    tsan='probe\.(own-fp|shared-fp|pic-frame-pointer) fork\. found\.stacks model\..*\.[23s] slab\.default'
    tsan="$tsan generator_signals example\\.sizes"
    asan='probe slab\.threads example\.s(ynopsis|izes) example\.tutorial_[15] copying model\. misuse unwind'
    asan="$asan alloc_failure redzone\\.run signals"
    case $1 in
    tsan_gcc) echo "$tsan threads\\. threads_failure cpp_(coroutine|generator) fuzz\\.random" ;;
    tsan_clang) echo "$tsan slab\\.threads" ;;
    asan_gcc) echo "$asan" ;;
    asan_clang) echo "$asan found\\.stacks" ;;
    esac
}
msan_tests='sanitizers api copying fork guard coroutine cancel local generator scheduler pool threads save_area
    stack_trim profile model\..*\.[123] allocator migration signals assertions found\.release overflow'
for tool in TSAN ASAN MSAN; do export "${tool}_OPTIONS=allocator_may_return_null=1"; done

# ---- counting ----

passed=0 failed=0 skipped=0 failures= skips= reasons=

skip() { # NAME REASON
    skipped=$((skipped + 1))
    skips="$skips
  $1: $2"
    echo "$1: skipped: $2"
}

# The lines of LOG that say why are printed again at the end: an output that is cut keeps its end.
fail() { # NAME LOG
    failures="$failures $1"
    reasons="$reasons
$1:
$(grep -E '\*\*\*|FAIL|ERROR|[Ee]rror|warning:|not so|expected|signal|^ +#[0-9]+ |: fuzz/|^fuzz/' "$2" |
        grep -v -e ' tests failed out of ' -e ' Passed ' -e '^ *Start ' | head -n 14 | cut -c 1-160)"
}

# ---- rows of the suite ----

# Sets name, cc, cxx, options, flags, width, left_out and dir. False: the row cannot be run here, and is counted as
# skipped.
read_row() { # ROW WIDTH
    # shellcheck disable=SC2046
    set -- "$2" $(echo "$suite_rows" | grep "^$1 ")
    name=$2 cc=$3 width=${1:-$4} left_out=$5 dir=build/test/$2
    shift 5
    options= flags=
    for flag; do
        case $flag in -DACORN_*) options="$options $flag" ;; *) flags="$flags${flags:+ }$flag" ;; esac
    done
    case $cc in gcc) cxx=g++ ;; *) cxx="clang++${cc#clang}" ;; esac
    case $flags in
    GCC_ASAN) # without the check that would find first what tests of ASan do
        flags="-O1 -g -fsanitize=address,undefined -fno-sanitize=object-size -fno-sanitize-recover=undefined" ;;
    FRAMES) flags="-O1 -g -fno-omit-frame-pointer -fstack-protector-all" ;;
    HARDENED)
        flags="-O2 -fPIE -pie -fcf-protection -fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=3" ;;
    WIDEST_VECTORS)
        if grep -q avx512f /proc/cpuinfo 2>/dev/null; then flags="-O2 -march=x86-64-v4"
        elif grep -q avx2 /proc/cpuinfo 2>/dev/null; then flags="-O2 -march=x86-64-v3"
        else skip "$name" "this processor has no AVX2" && return 1; fi ;;
    APN)
        plugin=$PWD/build/apn/apn.so
        [ -e "$plugin" ] || { skip "$name" "the compiler helper is not built (apn)" && return 1; }
        flags="-O2 -g -fplugin=$plugin -fpass-plugin=$plugin" ;;
    esac
    command -v "$cc" >/dev/null && command -v "$cxx" >/dev/null || { skip "$name" "no $cc or $cxx" && return 1; }
    mkdir -p "$dir"
    # shellcheck disable=SC2086
    printf '#include <vector>\nint main() { return 0; }\n' | "$cxx" $flags -x c++ - -o "$dir/probe" 2>"$dir/log" ||
        { skip "$name" "$cxx cannot build with $flags (see $dir/log)" && return 1; }
}

build_row() {
    ar=ar linker=
    case "$cc $flags" in
    clang*-flto*) ar=llvm-ar-${cc##*-} linker="-fuse-ld=lld" ;;
    gcc*-flto*) ar=gcc-ar ;;
    esac
    cxx_flags=$flags # C++ tests take longest to compile: lines are enough, and `check` is in a hurry
    case $flags in *-g*) cxx_flags="$flags -g1" ;; esac
    case $width in check | sim*) cxx_flags="$cxx_flags -O0 -g0" ;; esac
    # Options of an earlier, wider or narrower build of the row shall not stay.
    # shellcheck disable=SC2046
    cmake -S . -B "$dir" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" \
        -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$cxx_flags" \
        -DCMAKE_EXE_LINKER_FLAGS="$linker" -DCMAKE_SHARED_LINKER_FLAGS="$linker" \
        -DCMAKE_AR="$(command -v $ar || command -v ar)" -DCMAKE_RANLIB=/bin/true -DACORN_WERROR=ON \
        -UACORN_VARIANTS -UACORN_STANDARDS -UACORN_TESTS_ONCE -UACORN_CXX_FULL -UACORN_CXX_DEBUG \
        -UACORN_QUICK -UACORN_NIGHTLY -UACORN_HTTP -UACORN_HOOK $options $(width_options "$width") &&
        cmake --build "$dir" -j "$jobs"
}

either() { echo "^($(echo $* | tr ' ' '|'))"; } # WORD...

run_row() { # ROW WIDTH
    read_row "$1" "$2" || return 0
    start=$(date +%s)
    if ! build_row >"$dir/log" 2>&1; then
        echo "$name: does not build"
        tail -n 30 "$dir/log"
        failed=$((failed + 1))
        fail "$name(build)" "$dir/log"
        return
    fi
    built=$(date +%s)
    missing=$(sed -n "s/^-- skipped: /  $name: /p" "$dir/log")
    [ -z "$missing" ] || skips="$skips
$missing"
    set -f # what follows has patterns in it
    words=$(tests_left_out "$left_out")
    for word in $words; do
        ctest --test-dir "$dir" -N -R "^($word)" | grep -q '^ *Test *#' && continue
        echo "$name: no test is left out by $word"
        failed=$((failed + 1)) failures="$failures $name($word)"
    done
    # shellcheck disable=SC2046
    set -- $(width_tests "$width")
    [ -z "$words" ] || set -- "$@" -E "$(either "$words")"
    # threads_signals, threads_http: MSan does not know epoll_pwait2().
    [ "$left_out" != msan ] ||
        set -- "$@" -R "$(either "$msan_tests")" -E "_failure|migration.*scale|threads_(signals|http)"
    set +f
    (cd "$dir" && ctest -j $((2 * jobs)) --output-on-failure "$@") >"$dir/ctest.log" 2>&1 # many wait
    status=$?
    count_row
    times="built in $((built - start)) s, run in $(($(date +%s) - built)) s"
    echo "$name: ${all:-0} tests, ${bad:-?} failed, $count skipped ($cc $flags; $times)"
}

count_row() {
    total=$(sed -n 's/.*tests passed, \([0-9]*\) tests failed out of \([0-9]*\).*/\1 \2/p' "$dir/ctest.log")
    bad=${total% *} all=${total#* }
    not_run=$(sed -n '/did not run:/,$s/^\t *[0-9]* - \([^ ]*\) (Skipped).*/\1/p' "$dir/ctest.log")
    why=$(sed -n 's/^skipped: //p' "$dir/Testing/Temporary/LastTest.log" | sed 's/^[0-9]* checks/some checks/' |
        sort -u | paste -sd ';' -)
    [ -z "$not_run" ] || skips="$skips
  $name: $(echo $not_run): $why"
    count=$(echo $not_run | wc -w)
    passed=$((passed + ${all:-0} - ${bad:-0} - count)) skipped=$((skipped + count)) failed=$((failed + ${bad:-0}))
    [ $status -ne 0 ] || [ -z "$total" ] || return
    [ -n "$total" ] && [ "${bad:-0}" -gt 0 ] || failed=$((failed + 1))
    # Of each failed test the first lines.
    awk '/\*\*\*/ { lines = 14 } /^ *Start / || /^$/ { lines = 0 } lines-- > 0' "$dir/ctest.log" | head -n 120
    tail -n 15 "$dir/ctest.log"
    fail "$name" "$dir/ctest.log"
}

# ---- other rows ----

# Runs the command as one test. Of a failed one those lines of its log are shown that fit SHOWN.
step() { # NAME SHOWN COMMAND...
    name=$1 shown=$2 start=$(date +%s) log=build/test/$1.log
    shift 2
    mkdir -p build/test
    if "$@" >"$log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        grep -E "$shown" "$log" | tail -n 60
        fail "$name" "$log"
    fi
    echo "$name: $(tail -n 1 "$log") ($(($(date +%s) - start)) s)"
}

quiet_make() { make --no-print-directory "$@"; }

# The compiler helper's own tests; every eighth function of the corpus, or every one.
apn_tests() { # STEP
    quiet_make apn && cmake -DAPN_CORPUS_STEP="$1" build/apn &&
        ctest --test-dir build/apn -j "$jobs" --output-on-failure
}

valgrind_sample() {
    echo examples/example_synopsis examples/example_tutorial_3 tests/test_copying_release tests/test_cancel_release
}
# Left out: tests of bytes, time and the processor's registers; pool, which overflows stacks on purpose; what needs a
# mapping that fails under Valgrind with EINVAL, or x87's rounding.
valgrind_whole() {
    (cd build/test/gcc-O2 && ls examples/example_tutorial_[0-6] examples/example_reset)
    echo tests/test_sanitizers_lives
    for test in api copying cancel local scheduler save_area stack_trim profile entry guard; do
        (cd build/test/gcc-O2 && ls tests/test_${test}_release*)
    done
}

# C programs of row gcc-O2 under Valgrind, which must stay silent.
valgrind_programs() { # ROW "TOOL..." PROGRAM...
    row=$1 tools=$2 good=0 start=$(date +%s) log=build/test/valgrind.log
    shift 2
    [ $# -gt 0 ] || { failed=$((failed + 1)) failures="$failures $row(no programs: row gcc-O2 comes first)"; return; }
    for program; do
        case $program in *_model_*) argument="1 5000" ;; *lives) argument=lives ;; *) argument= ;; esac
        for tool in $tools; do
            case $tool in memcheck) options="--leak-check=full --errors-for-leak-kinds=definite" ;; *) options= ;; esac
            # shellcheck disable=SC2086
            if valgrind --tool="$tool" $options --quiet --error-exitcode=99 "build/test/gcc-O2/$program" $argument \
                >$log 2>&1; then
                good=$((good + 1))
            else
                failed=$((failed + 1))
                tail -n 30 $log
                fail "$tool/$program" $log
            fi
        done
    done
    passed=$((passed + good))
    echo "$row: $good runs clean ($(($(date +%s) - start)) s)"
}

has() { # ROW TOOL
    command -v "$2" >/dev/null || { skip "$1" "no $2" && return 1; }
}

run_other() { # ROW
    case $1 in
    lint)
        step lint ': (warning|error|style|performance|portability):|^stale|^lint:' quiet_make lint
        for tool in $(sed -n 's/^lint: \(.*\): skipped.*/\1/p' build/test/lint.log); do
            skip "lint.$tool" "it is not here"
        done ;;
    lint-deep) step lint-deep ': (warning|error|style|performance|portability):|^stale|^lint:' \
        quiet_make lint LINT_NODES=225000 ;;
    apn) ! has apn clang-19 || step apn . apn_tests 8 ;;
    languages) step languages 'FAIL|rror|panicked' quiet_make test-languages ;;
    apn-whole) ! has apn-whole clang-19 || step apn-whole . apn_tests 1 ;;
    valgrind) ! has valgrind valgrind || valgrind_programs "$1" memcheck $(valgrind_sample) ;;
    valgrind-whole) ! has valgrind-whole valgrind || valgrind_programs "$1" "memcheck helgrind" $(valgrind_whole) ;;
    platforms) # other processors, emulated: one compiler and the core's tests for each
        step platforms '^[^s]|^s[^e]' quiet_make test-platforms-quick
        grep -E "^[a-z0-9_-]+ .*skipped" build/test/platforms.log ;;
    platforms-whole) step platforms-whole '^[^s]|^s[^e]' quiet_make test-platforms ;;
    litmus) step litmus 'FAILED|NOT FOUND|rror:' quiet_make litmus ;;
    litmus-long) step litmus-long 'FAILED|NOT FOUND|rror:' quiet_make litmus LITMUS="--chance 150 --limit 600" ;;
    prove) step prove 'FAILED|NOT FOUND|ERROR|rror:' quiet_make prove-quick prove-model ;;
    prove-whole) step prove-whole 'FAILED|NOT FOUND|ERROR|rror:' quiet_make prove prove-model MODEL="--states 3000" ;;
    fuzz) ! has fuzz clang-19 || step fuzz . sh verification/fuzz/run.sh 30 ;;
    fuzz-long) ! has fuzz-long clang-19 || step fuzz-long . sh verification/fuzz/run.sh 3600 ;;
    soak) step soak . sh tests/soak.sh 3600 ;;
    mutants) # of each commit others: 200 of some ten thousand
        step mutants '^survived|FAILED|rror' python3 tools/mutate.py run --tier check --count 200 --at-least 85 \
            --seed "$(git rev-parse HEAD 2>/dev/null || echo 1)" --results build/test/mutants.jsonl ;;
    reverted) # mended faults, put back: the library's own invariants name each
        step reverted 'NOT NAMED|rror|reverted_faults' python3 tests/reverted.py ;;
    sim-faults) # mended faults of orders, put back: a simulation finds each
        step sim-faults ' starts |FAILS|rror' python3 tests/sim_faults.py ;;
    sim-log | sim-log-long) # likewise the faults of examples/sim_log
        program=build/test/gcc-O2/examples/example_sim_log starts=3
        [ "$1" = sim-log ] || program=build/test/gcc-long/examples/example_sim_log starts=101
        step "$1" ' starts |FAILS|rror' python3 tests/sim_log.py "$program" --starts $starts ;;
    sim-faults-long) step sim-faults-long ' starts |FAILS|rror' python3 tests/sim_faults.py --starts 101 ;;
    packages) step packages '^(FAILED|error)|rror:' quiet_make packages ;;
    site) step site 'WARNING|rror' quiet_make site ;;
    coverage) step coverage 'not run|run or gone|without a reason|FAILED|rror' quiet_make coverage ;;
    *) failed=$((failed + 1)) failures="$failures $1(no such row)" ;;
    esac
}

# ---- the run ----

[ $# -gt 0 ] || { sed -n '2,5s/^# //p' "$0" && exit 2; }
begin=$(date +%s)
for tier; do
    for row in $(tier_rows "$tier"); do
        width=${row#*:} row=${row%%:*}
        [ "$width" != "$row" ] || width=
        if echo "$suite_rows" | grep -q "^$row "; then run_row "$row" "$width"; else run_other "$row"; fi
    done
done

echo
[ -z "$skips" ] || echo "skipped:$skips"
[ -z "$failures" ] || echo "failed:$failures$reasons"
echo "$(($(date +%s) - begin)) seconds"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
