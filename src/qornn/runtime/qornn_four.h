/* The arguments of a plane where its assembly expects them: r0 rows, r1 the stride in bytes, r2 the end of h, r3 h, r4 the
   four sums. */
#ifndef QORNN_FOUR_H
#define QORNN_FOUR_H

#define QORNN_FOUR(f)                                                   \
    register const uint32_t *row __asm__("r0") = rows;                  \
    register uint32_t apart __asm__("r1") = (uint32_t)(4 * stride);     \
    register const int16_t *end __asm__("r2") = h + words * (32 / (f)); \
    register const int16_t *from __asm__("r3") = h;                     \
    register uint32_t *into __asm__("r4") = sums
#define QORNN_FOUR_OPERANDS "+r"(row), "+r"(apart), "+r"(end), "+r"(from), "+r"(into)

#endif
