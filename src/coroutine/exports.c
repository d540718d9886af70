/* The calls on the fast path as exported functions, for languages that cannot use the header: the bodies are the header's, or
 * assembly where src/entry/ has a faster one. */
#define ACO__FAST ACO_API
#define ACO__EXPORTED_FORMS
#include "entry/forms.h"

#include "coroutine/internal.h"
