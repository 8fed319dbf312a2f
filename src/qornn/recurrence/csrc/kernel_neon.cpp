#if defined(__aarch64__) && defined(__ARM_NEON)
#define ISA neon
#define LANES 4
#define ROWS 6
#define VECTORS 4
#include "tile.inc.h"

const qornn::Kernel *qornn::neon_kernel() { return &neon::kernel; }
#else
#include "kernel.h"

const qornn::Kernel *qornn::neon_kernel() { return nullptr; }
#endif
