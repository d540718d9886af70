/* A function that would be a leaf without the cold call that each switch contains. */
#include "aco.h"

void *leaf(void *value)
{
    volatile long kept[4];
    kept[0] = (long)value;
    kept[1] = kept[0] + 1;
    return aco_yield_value(value);
}
