#!/bin/sh
# test.sh LANGUAGE LIBRARY_DIR WORK CC: tests a binding with the libraries in LIBRARY_DIR. Exit 77: a tool for it is
# missing. Nothing is fetched.
set -eu
language=$1 libraries=$2 work=$3/$1 cc=$4
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
mkdir -p "$work"

need() {
    command -v "$1" >/dev/null || { echo "skipped: no $1"; exit 77; }
}
shared() { # SOURCE OUT FLAG...
    source=$1 out=$2
    shift 2
    "$cc" -O2 -Wall -Wextra -Werror -shared -fPIC -I"$root/include" "$source" -o "$out" "$@" \
        -L"$libraries" -lacorn -Wl,-rpath,"$libraries"
}

case $language in
constants)
    need python3
    python3 "$here/constants.py" --check --cc "$cc"
    ;;
python)
    need python3
    shared "$here/python/acorn_python.c" "$work/libacorn_python.so"
    ln -sf "$libraries/libacorn.so" "$work/libacorn.so"
    ACORN_LIBRARY_PATH=$work python3 "$here/python/test.py"
    [ -e "$libraries/libacorn_io.so" ] || exit 0
    shared "$here/python/acorn_asyncio.c" "$work/libacorn_asyncio.so" -lacorn_io -lacorn
    shared "$here/python/test_asyncio.c" "$work/libtest_asyncio.so" -L"$work" -lacorn_asyncio -Wl,-rpath,"$work"
    ACORN_LIBRARY_PATH=$work python3 "$here/python/test_asyncio.py"
    ;;
rust)
    need cargo
    CARGO_TARGET_DIR=$work ACORN_LIB_DIR=$libraries
    export CARGO_TARGET_DIR ACORN_LIB_DIR
    cd "$here/rust"
    cargo test --offline --quiet
    [ "$(cargo run --offline --quiet --example words 'a (b c)' | tr -d '\n')" = 'a  b  c' ]
    [ "$(cargo run --offline --quiet --profile abort --example abort)" = leaked ]
    if cargo run --offline --quiet --profile abort --example abort scope 2>"$work/abort.txt"; then exit 1; fi
    grep -q 'a suspended coroutine cannot be cancelled' "$work/abort.txt"
    unset ACORN_LIB_DIR # build.rs compiles the library
    cargo run --offline --quiet --example words >/dev/null
    ;;
lua)
    need lua5.4
    [ -e /usr/include/lua5.4/lua.h ] || { echo "skipped: no lua.h"; exit 77; }
    shared "$here/lua/acorn.c" "$work/acorn.so" -I/usr/include/lua5.4
    LUA_CPATH="$work/?.so" lua5.4 "$here/lua/test.lua"
    ;;
zig) # the first time, zig compiles its translator: a minute
    python=$root/build/zig/venv/bin/python
    [ -x "$python" ] || { echo "skipped: no ziglang (tools/setup.sh languages)"; exit 77; }
    ZIG_GLOBAL_CACHE_DIR=$root/build/zig/cache ZIG_LOCAL_CACHE_DIR=$work/cache
    export ZIG_GLOBAL_CACHE_DIR ZIG_LOCAL_CACHE_DIR
    cp "$here/zig/main.zig" "$work"
    "$python" -m ziglang translate-c -DACO_CONFIG_NO_INLINE -lc -I"$root/include" "$root/include/aco.h" >"$work/aco.zig"
    for mode in Debug ReleaseFast; do
        "$python" -m ziglang build-exe "$work/main.zig" -O $mode -lc -L"$libraries" -lacorn -rpath "$libraries" \
            -femit-bin="$work/$mode"
        "$work/$mode"
    done
    ;;
go)
    need go
    cd "$here/go"
    CGO_CFLAGS="-I$root/include" CGO_LDFLAGS="$libraries/libacorn.a" GOFLAGS=-mod=mod go run .
    ;;
esac
