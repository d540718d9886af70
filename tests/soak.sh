#!/bin/sh
# soak.sh [SECONDS]: runs tests/soak.c for so long (600) altogether, built with gcc, and for the last third with clang's
# address and leak sanitizer, where there are no share stacks. Then as long again the proxy of examples/proxy among
# backends that fail. Exit 1: something was left, or wrong.
set -u
cd "$(dirname "$0")/.."
seconds=${1:-600}
seed=$(date +%s)

soak() { # NAME CC FLAGS SECONDS SEED
    dir=build/soak/$1
    mkdir -p "$dir"
    cmake -S . -B "$dir" -DCMAKE_BUILD_TYPE=None -DCMAKE_C_COMPILER="$2" -DCMAKE_C_FLAGS="$3" \
        -DACORN_VARIANTS=release >"$dir/log" 2>&1 &&
        cmake --build "$dir" --target test_soak >>"$dir/log" 2>&1 ||
        { tail -n 30 "$dir/log"; echo "soak: $1 does not build"; return 1; }
    echo "soak: $1, $4 s"
    "$dir/tests/test_soak" "$4" "$5"
}

status=0
third=$((seconds / 3 + 1))
soak gcc gcc "-O2 -g" $third $((seed / 2 * 2 + 1)) || status=1
soak gcc gcc "-O2 -g" $third $((seed / 2 * 2)) || status=1
if command -v clang-19 >/dev/null; then
    soak address clang-19 "-O1 -g -fsanitize=address" $third $((seed / 2 * 2)) || status=1
else
    echo "soak: skipped: the address sanitizer: no clang-19"
fi
dir=build/soak/gcc
if command -v python3 >/dev/null && cmake --build $dir --target example_proxy test_proxy_backend >>$dir/log 2>&1; then
    echo "soak: proxy, $seconds s"
    python3 tests/proxy/faults.py $dir/examples/example_proxy $dir/tests/test_proxy_backend 0 "$seconds" || status=1
else
    echo "soak: skipped: the proxy: no python3, or it was not built"
fi
exit $status
