#!/bin/sh
# convention.sh PLUGIN DIR: what convention.cpp prints must be the same without and with the pass, at every level, as a
# unit by itself and as a whole program, with returns by ret and by jump; and the pass must have found what there is to
# infect.
set -u
plugin=$1 dir=$2 failed=0
root=$(cd "$(dirname "$0")/../../.." && pwd)
mkdir -p "$dir"
unset APN_LIST APN_RETURNS

build() { # OUTPUT OPTION...
    output=$1
    shift
    clang++-19 -std=c++20 -I"$root/include" "$@" "$root/tools/apn/tests/convention.cpp" "$dir/libacorn.a" \
        -lpthread -o "$output"
}

(cd "$dir" && rm -f ./*.o libacorn.a && for file in $(sh "$root/tools/sources.sh" acorn acorn_threads acorn_io); do
    clang-19 -std=gnu11 -D_GNU_SOURCE -O2 -fexceptions -I"$root/include" -I"$root/src" -c "$root/$file" || exit 1
done && ar rc libacorn.a ./*.o) || { echo "the library does not build"; exit 1; }

for options in -O0 "-O0 -g" -O1 -O2 "-O3 -march=native" \
    "-Os -fno-omit-frame-pointer -fstack-clash-protection -fstack-protector-strong" \
    "-O2 -fsanitize=undefined" "-O2 -flto -fuse-ld=lld" "-O2 -flto=thin -fuse-ld=lld"; do
    rm -f "$dir"/plain* "$dir"/infected* "$dir/report"
    linker= returns=
    case $options in *-O2* | *-Os* | *-g) returns=all ;; esac
    case $options in *-flto*) linker="-Wl,--load-pass-plugin=$plugin" ;; esac
    # shellcheck disable=SC2086
    build "$dir/plain" $options && "$dir/plain" >"$dir/plain.txt" &&
        APN_RETURNS=$returns APN_REPORT=$dir/report \
            build "$dir/infected" -fplugin="$plugin" -fpass-plugin="$plugin" $options $linker &&
        "$dir/infected" >"$dir/infected.txt" && cmp "$dir/plain.txt" "$dir/infected.txt" ||
        { echo "$options: FAILED"; failed=1; continue; }
    for name in yieldsm throwsmPm jumpsm doublesdddddddddd; do
        grep -q "^infected: _ZL[0-9]*$name " "$dir/report" || { echo "$options: $name was not infected"; failed=1; }
    done
    for name in taken variadic variable_frame; do
        ! grep -q "^infected: _ZL[0-9]*$name" "$dir/report" || { echo "$options: $name was infected"; failed=1; }
    done
    [ -z "$returns" ] || grep -q "^returns: _ZL6yieldsm: by pop and jump" "$dir/report" ||
        { echo "$options: yields() returns by ret"; failed=1; }
    echo "$options: $(grep -c ^infected "$dir/report") infected, $(wc -l <"$dir/plain.txt") lines alike"
done
exit $failed
