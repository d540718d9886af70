#!/bin/sh
# seeded.sh DIR: of the corpus's units in DIR takes one with an infected function and seeds faults in it, one at a
# time: check.py must find each.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for unit in "$1"/*-O2.ll; do
    name=$(sed -n 's/^infected: \([A-Za-z_0-9]*\) .*: it .*/\1/p' "${unit%.ll}.report" 2>/dev/null | head -n 1)
    [ -n "$name" ] && grep -q "call preserve_nonecc [^@]*@$name(" "$unit" && break
    name=
done
[ -n "$name" ] || { echo "no unit of the corpus has an infected function that is called"; exit 1; }
cp "${unit%.ll}.report" "$dir/unit.report"
python3 "$here/check.py" "$unit" >/dev/null || { echo "$unit is not right to begin with"; exit 1; }

seeded_fault() { # WHAT SED-EXPRESSION
    sed "$2" "$unit" >"$dir/unit.ll"
    ! cmp -s "$unit" "$dir/unit.ll" || { echo "$1: was not seeded"; exit 1; }
    ! python3 "$here/check.py" "$dir/unit.ll" >"$dir/log" || { echo "$1: was not found"; exit 1; }
    grep -q "^wrongly infected: $name " "$dir/log" || { echo "$1: something else was found"; cat "$dir/log"; exit 1; }
    echo "found: $1"
}
seeded_fault "an old convention at a call" "s/call preserve_nonecc \([^@]*@$name(\)/call \1/"
seeded_fault "an old convention where it is defined" \
    "s/^define internal preserve_nonecc \([^@]*@$name(\)/define internal \1/"
seeded_fault "a function that others may call" \
    "s/^define internal preserve_nonecc \([^@]*@$name(\)/define preserve_nonecc \1/"
seeded_fault "an address in a variable" "\$a @seeded = global ptr @$name"
seeded_fault "an address in an argument" \
    "s/call preserve_nonecc \([^@]*@$name(\)/call void @takes(ptr @$name)\n  call preserve_nonecc \1/"
