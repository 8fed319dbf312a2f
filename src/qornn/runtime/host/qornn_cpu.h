/* What the processor can do and the system lets programs use. Asked of the processor itself: __builtin_cpu_supports reads
   a variable of the compiler's own library, which not every compiler brings (zig's does not). */
#ifndef QORNN_CPU_H
#define QORNN_CPU_H

#if defined(__x86_64__)
#include <cpuid.h>

#define QORNN_HAS_AVX2 1u
#define QORNN_HAS_FMA 2u
#define QORNN_HAS_AVX512F 4u
#define QORNN_HAS_VNNI 8u /* with AVX-512 F, BW, DQ and VL */

/* All of these that are there. */
static inline unsigned qornn_cpu(void) {
    const unsigned avx = 0x6, avx512 = 0xe6;                     /* registers that the system saves, in XCR0 */
    const unsigned usable = 1u << 27 | 1u << 28, fma = 1u << 12; /* OSXSAVE and AVX */
    const unsigned f = 1u << 16, all = f | 1u << 17 | 1u << 30 | 1u << 31, vnni = 1u << 11, avx2 = 1u << 5;
    unsigned a, b, c, d, saved, high, found = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & usable) != usable) {
        return 0;
    }
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if ((saved & avx) != avx) {
        return 0;
    }
    found |= c & fma ? QORNN_HAS_FMA : 0u;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        return found;
    }
    found |= b & avx2 ? QORNN_HAS_AVX2 : 0u;
    if ((saved & avx512) == avx512) { /* never on macOS, which says so only after their first use */
        found |= b & f ? QORNN_HAS_AVX512F : 0u;
        found |= (b & all) == all && c & vnni ? QORNN_HAS_VNNI : 0u;
    }
    return found;
}

#endif

#endif
