#if defined(__AVX512F__)
#define ISA avx512
#define LANES 16
#define ROWS 8
#define VECTORS 3
#include "tile.inc.h"

const qornn::Kernel *qornn::avx512_kernel() { return &avx512::kernel; }
#else
#include "kernel.h"

const qornn::Kernel *qornn::avx512_kernel() { return nullptr; }
#endif
