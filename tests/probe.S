#include "probe.h"
#include ASSEMBLY
