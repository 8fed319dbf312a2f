#if defined(__AVX2__) && defined(__FMA__)
#define ISA avx2
#define LANES 8
#define ROWS 6
#define VECTORS 2
#include "tile.inc.h"

const qornn::Kernel *qornn::avx2_kernel() { return &avx2::kernel; }
#else
#include "kernel.h"

const qornn::Kernel *qornn::avx2_kernel() { return nullptr; }
#endif
