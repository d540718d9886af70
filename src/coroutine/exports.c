/* The calls of the fast path as exported functions, for languages that cannot use the header. The bodies are the
 * header's; src/entry/ has faster ones in assembly for some targets. */
#define ACO__FAST ACO_API
#define ACO__EXPORTED_FORMS
#include "entry/forms.h"

#include "coroutine/internal.h"
