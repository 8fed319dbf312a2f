#define ISA generic
#define LANES 4
#define ROWS 4
#define VECTORS 2
#include "tile.inc.h"

const qornn::Kernel *qornn::generic_kernel() { return &generic::kernel; }
