#!/bin/sh
# sim_porcupine.sh PROGRAM: histories of tests/sim_history.c, checked by Porcupine (a Go module): those of a register
# are linearizable, and stale reads are found. Exits with 77, "skipped", without Go or the module.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
skip()
{
    echo "skipped: $1"
    exit 77
}
PATH=$PATH:/usr/local/go/bin
command -v go >/dev/null || skip "go is not installed"
(cd "$here/porcupine" && timeout 60 go build -mod=readonly -o "$work/checker" . >"$work/build" 2>&1) ||
    skip "the module github.com/anishathalye/porcupine cannot be had or built: $(tail -n 1 "$work/build")"

mkdir "$work/good" "$work/stale"
"$1" --runs 20 -- "$work/good" >/dev/null
"$work/checker" "$work"/good/*.jsonl
"$1" --runs 20 -- "$work/stale" stale >/dev/null
if "$work/checker" "$work"/stale/*.jsonl >"$work/found"; then
    echo "no stale read was found"
    exit 1
fi
tail -n 1 "$work/found"
