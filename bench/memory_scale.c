/* Coroutines by the million: Acorn on a share stack. memory_scale.h has the measurements. SCALE_ACO_ENTRY marks the
 * entry functions with ACO_ENTRY, if the compiler has an attribute for it. */
#include "acorn_share.h"

#ifdef SCALE_ACO_ENTRY
#define IMPL "acorn, ACO_ENTRY"
/* A declaration of its own has the attribute; the definition inherits it. */
#define SCALE_HOLDER(bytes)                                                                                            \
    static ACO_ENTRY void hold_##bytes(void);                                                                          \
    COPYING_HOLDER(bytes)
#define SCALE_ENTRY_POINT(bytes) ACO_ENTRY_POINT(hold_##bytes)
typedef aco_cofuncp_t co_entry_t;
#define SCALE_OWN_MAIN
#else
#define IMPL "acorn"
#endif
#define SCALE_LARGE_PAGES
#include "memory_scale.h"

#ifdef SCALE_ACO_ENTRY
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

int main(int argc, char **argv)
{
    if (sizeof TEXT(ACO_ENTRY) == 1) {
        bench_json_missing("scale", IMPL, "{}", "ACO_ENTRY is empty: this compiler has no attribute for it");
        return 0;
    }
    return scale_main(argc, argv);
}
#endif
