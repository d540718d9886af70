#!/bin/sh
# emulated.sh GDB PROGRAM EMULATOR [OPTION...]: steps.py, where qemu-user runs the program.
gdb=$1 program=$2
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$@" -g "$scratch/socket" "$program" &
while [ ! -S "$scratch/socket" ] && kill -0 $!; do sleep 0.1; done
"$gdb" -q -batch -nx -iex "set debuginfod enabled off" -iex "set auto-load off" \
    -ex "file $program" -ex "target remote $scratch/socket" -ex "python is_emulated = True" \
    -x "$(dirname "$0")/steps.py"
