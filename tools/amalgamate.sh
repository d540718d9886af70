#!/bin/sh
# amalgamate.sh SOURCE_DIR OUT_DIR SOURCE... --own SOURCE... [--LIBRARY SOURCE...]...: writes to OUT_DIR what
# `cc acosw.S aco.c app.c` needs to build a program with nothing else at hand, as with libaco: aco.h, aco.c and an empty
# acosw.S. Beside them, for programs that include them: aco_assert_override.h, aco.hpp, and the other public headers
# under aco/. The sources after --own are left out under ACO_CONFIG_LIBACO_ONLY; those after --io become aco_io.c, for
# programs that use aco/io.h; those after --threads, --sim, --resilience, --service, --http, --grpc, --debug, --tls and
# --hook likewise. aco_http.c needs llhttp/renamed_*.c. It fails where a header would be missing in one of these files
# (amalgamate.awk says when).
set -eu
root=$1 out=$2
shift 2
mkdir -p "$out/aco"
cd "$root"
expand="awk -v root=$root -f $root/tools/amalgamate.awk"
notice() {
    printf '/* Acorn %s, put into one file by tools/amalgamate.sh. Do not edit: change the sources.\n' \
        "$(sed -n 's/.*ACORN_VERSION_STRING "\(.*\)"/\1/p' include/aco.h)"
    echo ' * SPDX-License-Identifier: Apache-2.0 */'
}
{
    notice
    $expand -v dirs="$root/include" -- "$root/include/aco.h"
} > "$out/aco.h"
have=$(sed -n 's|^/\* ---- include/\(.*\) ---- \*/$|\1|p' "$out/aco.h")
for header in include/aco/*.h; do
    name=${header#include/}
    {
        notice
        case " $(echo $have) " in
        *" $name "*) echo '#include "../aco.h"' ;;
        *) $expand -v dirs="$root/include" -v have="$have" -v core='#include "../aco.h"' \
            -v keep="$(echo include/aco/*.h | sed 's|include/||g')" -- "$root/$header" ;;
        esac
    } > "$out/$name"
done
{
    notice
    printf '#ifdef __cplusplus\n#error "acorn: aco.c is C: compile it with cc -c aco.c, and link aco.o"\n#else\n'
    printf '#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n'
    files=
    for source; do
        case $source in
        --io | --threads | --sim | --resilience | --service | --http | --grpc | --debug | --tls | --hook) break ;;
        --own) files="$files #ifndef_ACO_CONFIG_LIBACO_ONLY" ;;
        *) files="$files $root/$source" ;;
        esac
    done
    # shellcheck disable=SC2086
    $expand -v dirs="$root/include:$root/src" -v have="$have" -v core='#include "aco.h"' -- $files
    printf '#endif\n#endif\n'
} > "$out/aco.c"
for library in io threads sim resilience service http grpc debug tls hook; do
    files=
    for source; do
        case $source in
        --$library) files=: ;;
        --*) [ -z "$files" ] || break ;;
        *) [ -z "$files" ] || files="$files $root/$source" ;;
        esac
    done
    [ -n "$files" ] || continue
    {
        notice
        printf '#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n#define _FILE_OFFSET_BITS 64\n'
        # shellcheck disable=SC2086
        $expand -v dirs="$root/include:$root/src:$root/third_party" -v have="$have" -v core='#include "aco.h"' -- \
            ${files#:}
    } > "$out/aco_$library.c"
done
[ ! -e "$out/aco_http.c" ] || cp -r "$root/third_party/llhttp" "$out/"
cp include/aco_assert_override.h include/aco.hpp "$out/"
cp include/aco/*.hpp "$out/aco/"
mkdir -p "$out/aco/detail"
for name in $(sed -n 's|^#include "detail/\(.*\)"$|\1|p' include/aco/*.hpp | sort -u); do
    {
        notice
        $expand -v dirs="$root/include" -v have="$have" -v core='#include "../../aco.h"' -- \
            "$root/include/aco/detail/$name"
    } > "$out/aco/detail/$name"
done
mkdir -p "$out/aco/compat"
cp include/aco/compat/*.h "$out/aco/compat/"
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
