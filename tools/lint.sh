#!/bin/sh
# lint.sh: clang-tidy (.clang-tidy), cppcheck (tools/lint/cppcheck) and gcc -fanalyzer (tools/lint/fanalyzer) over the
# library for Linux on x86-64, in one configuration each; clang-format (.clang-format) over the lines that are not
# committed yet; and the width of lines. Any finding that those files do not name is an error. A tool that is not here
# is skipped by name.
set -u
width=120
width_is_error=1 # 1: a wider line fails; 0: it is only counted
cd "$(dirname "$0")/.."
LC_ALL=C
export LC_ALL
jobs=$(nproc 2>/dev/null || echo 2)
log=build/lint
mkdir -p $log
status=0
flags="-std=c11 -I$PWD/include -I$PWD/src -isystem $PWD/third_party -fexceptions -O2 -DACO_DEBUG=0"
# How far clang's analyzer follows each function. Its own limit is 225000 (`nightly`), which takes three times as long.
nodes=${LINT_NODES:-30000}

libraries="acorn acorn_threads acorn_io acorn_sim acorn_resilience acorn_service acorn_debug"
[ ! -e /usr/include/openssl/ssl.h ] || libraries="$libraries acorn_http acorn_tls acorn_hook acorn_grpc"
# shellcheck disable=SC2086
sources=$(sh tools/sources.sh $libraries)

found() { # TOOL FILE: its findings, if there are any
    if [ -s "$2" ]; then
        cat "$2"
        echo "lint: $1: $(grep -cE ': (warning|error|style|performance|portability):|^stale' "$2") findings"
        status=1
    else
        echo "lint: $1: nothing found ($(($(date +%s) - start)) s)"
    fi
    start=$(date +%s)
}

has() {
    command -v "$1" >/dev/null && return
    echo "lint: $1: skipped, it is not here"
    return 1
}

start=$(date +%s)
if has clang-tidy-19; then
    # shellcheck disable=SC2086
    echo "$sources" | xargs -P "$jobs" -I{} clang-tidy-19 --quiet {} -- $flags -Xclang -analyzer-config \
        -Xclang "max-nodes=$nodes" >$log/tidy.c 2>/dev/null ||
        [ -s $log/tidy.c ] || echo 'error: did not run' >$log/tidy.c
    # It stands for aco.hpp. A release build, as above: in a debug build some conditions are constant.
    clang-tidy-19 --quiet examples/tree_iterator.cpp -- -std=c++20 "-I$PWD/include" -DACO_DEBUG=0 \
        >$log/tidy.cpp 2>/dev/null
    cat $log/tidy.c $log/tidy.cpp >$log/tidy
    found clang-tidy $log/tidy
fi

if has cppcheck; then
    # shellcheck disable=SC2046
    cppcheck -j "$jobs" --quiet --std=c11 --enable=warning,style,performance,portability \
        --inline-suppr --suppressions-list=tools/lint/cppcheck "-I$PWD/include" "-I$PWD/src" \
        -D__GNUC__=12 -D__linux__ -D__ELF__ -D__x86_64__ -D__SIZEOF_POINTER__=8 -D__STDC_VERSION__=201112L \
        $(echo "$sources" | sed "s,^,$PWD/,") >$log/cppcheck 2>&1
    found cppcheck $log/cppcheck
fi

if has gcc; then
    # shellcheck disable=SC2086
    echo "$sources" | xargs -P "$jobs" -I{} gcc -fanalyzer $flags -c {} -o /dev/null 2>&1 |
        sed "s,^$PWD/,," >$log/fanalyzer.all
    sed -n 's/^\([^: ]*\):[0-9]*:[0-9]*\(: warning: \)/\1\2/p' $log/fanalyzer.all | sort -u >$log/fanalyzer.lines
    sed '/^#/d; /^$/d' tools/lint/fanalyzer | sort -u >$log/fanalyzer.known
    { comm -23 $log/fanalyzer.lines $log/fanalyzer.known
        comm -13 $log/fanalyzer.lines $log/fanalyzer.known | sed 's/^/stale, tools\/lint\/fanalyzer: /'
        grep ': error: ' $log/fanalyzer.all; } >$log/fanalyzer
    found 'gcc -fanalyzer' $log/fanalyzer
fi

# Assembly is laid out by hand. See .clang-format for why not whole files.
if has git-clang-format-19 && git rev-parse --git-dir >/dev/null 2>&1; then
    git-clang-format-19 --binary clang-format-19 --diff HEAD -- src include tests examples \
        >$log/format 2>&1
    grep -q '^diff ' $log/format || : >$log/format
    found 'clang-format, of what is not committed' $log/format
fi

# Each file with the number of its lines that are wider, in characters. Of Markdown, only text counts: no tables, links,
# code or generated parts.
wide() {
    git ls-files '*.[ch]' '*.cpp' '*.hpp' '*.inc' '*.py' '*.sh' '*.cmake' '*.md' '*CMakeLists.txt' \
        ':!third_party' >$log/files
    while read -r file; do
        awk -v width=$width -v file="$file" -v text="${file##*.}" '
            text == "md" && /^ *```/ { code = !code }
            text == "md" && /^<!-- [a-z]*:(begin|end) -->/ { generated = /:begin/ }
            text == "md" && (code || generated || /^    / || /^ *[|]/ || /\]\(|https?:/) { next }
            { gsub(/[\200-\277]/, "") } # the second and later bytes of a character
            length($0) > width { n++ }
            END { if (n) print file ": " n }' "$file"
    done <$log/files
}
if git rev-parse --git-dir >/dev/null 2>&1; then
    wide >$log/width
    cat $log/width
    lines=$(awk '{ n += $NF } END { print n + 0 }' $log/width)
    echo "lint: $lines lines in $(wc -l <$log/width) files are wider than $width"
    [ $width_is_error -eq 0 ] || [ ! -s $log/width ] || status=1
fi
exit $status
