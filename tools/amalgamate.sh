#!/bin/sh
# amalgamate.sh SOURCE_DIR OUT_DIR SOURCE...: writes aco.h, aco.c, aco.hpp, aco_assert_override.h and an empty acosw.S
# to OUT_DIR, so that `cc acosw.S aco.c app.c` builds a program with nothing else at hand, as with libaco.
set -eu
root=$1 out=$2
shift 2
mkdir -p "$out"
cd "$root"
expand="awk -v root=$root -f $root/tools/amalgamate.awk"
notice() {
    printf '/* Acorn %s, put into one file by tools/amalgamate.sh. Do not edit: change the sources.\n' \
        "$(sed -n 's/.*ACORN_VERSION_STRING "\(.*\)"/\1/p' include/aco.h)"
    echo ' * SPDX-License-Identifier: Apache-2.0 */'
}
{
    notice
    $expand -v dirs="$root/include" -- "$root/include/aco.h" "$root/include/aco/pool.h" \
        "$root/include/aco/scheduler.h" "$root/include/aco/group.h" "$root/include/aco/sync.h" \
        '#ifndef ACO_CONFIG_NO_INLINE' "$root/include/aco/in_stack_generator.h" '#endif'
} > "$out/aco.h"
{
    notice
    printf '#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n'
    files=
    for source; do files="$files $root/$source"; done
    # shellcheck disable=SC2086
    $expand -v dirs="$root/include:$root/src" \
        -v skip='aco.h aco/pool.h aco/scheduler.h aco/scope.h aco/group.h aco/sync.h aco/generator.h aco/in_stack_generator.h' -- $files
} > "$out/aco.c"
cp include/aco_assert_override.h "$out/"
sed 's|^#include "aco/generator.h"|#include "aco.h"|' include/aco.hpp > "$out/aco.hpp"
cat > "$out/acosw.S" <<'END'
/* Empty: the switch is inline, in aco.h. The file exists so that build lines written for libaco keep working. A program
 * has the marks that all its objects have. This object has those that its compiler gives to C, except AArch64's guarded
 * control stacks, which the switch does not support. */
#ifdef __ELF__
#ifdef __CET__
#include <cet.h>
#endif
#if defined(__aarch64__) && (defined(__ARM_FEATURE_BTI_DEFAULT) || defined(__ARM_FEATURE_PAC_DEFAULT))
#ifdef __ARM_FEATURE_BTI_DEFAULT
#define MARK_BTI 1
#else
#define MARK_BTI 0
#endif
#ifdef __ARM_FEATURE_PAC_DEFAULT
#define MARK_PAC 2
#else
#define MARK_PAC 0
#endif
.section .note.gnu.property,"a" /* GNU_PROPERTY_AARCH64_FEATURE_1_AND */
.balign 8
.long 4,16,5
.asciz "GNU"
.long 0xc0000000,4,MARK_BTI|MARK_PAC,0
#endif
.section .note.GNU-stack,"",%progbits
#endif
END
