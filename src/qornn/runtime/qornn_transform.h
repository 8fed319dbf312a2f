/* Sylvester's transform S z in place, by additions alone: three, two or one of its log2 n stages in one pass over z, since
   loads and stores cost as much as the sums. The stages commute, so the widest come first. */
#ifndef QORNN_TRANSFORM_H
#define QORNN_TRANSFORM_H

#include "qornn.h"

/* One stage of units `apart` from each other. */
QORNN_INLINE void qornn_pass2(int32_t *z, size_t n, size_t apart) {
    QORNN_ROLLED
    for (size_t group = 0; group < n; group += 2 * apart) {
        QORNN_ROLLED
        for (int32_t *at = z + group, *const end = at + apart; at != end; at++) {
            const int32_t a = at[0], b = at[apart];
            at[0] = a + b;
            at[apart] = a - b;
        }
    }
}

QORNN_INLINE void qornn_mix4(int32_t *a, int32_t *b, int32_t *c, int32_t *d) {
    const int32_t ab = *a + *b, a_b = *a - *b, cd = *c + *d, c_d = *c - *d;
    *a = ab + cd;
    *b = a_b + c_d;
    *c = ab - cd;
    *d = a_b - c_d;
}

/* GCC for size leaves the high registers alone, which this needs. */
#if QORNN_ASSEMBLY && defined(__ARM_ARCH_6M__) && (defined(__clang__) || !defined(__OPTIMIZE_SIZE__))

/* By hand: compilers keep half of it on the stack. Neighbours are loaded and stored at once; otherwise the pointer goes
   to the second pair and back, so that seven of the eight registers are enough and the frame pointer stays as it is. */
QORNN_INLINE void qornn_pass4(int32_t *z, size_t n, size_t apart) {
    const uint32_t pair = (uint32_t)(8 * apart), back = 0u - pair;
    if (apart == 1) {
        register int32_t *at __asm__("r0") = z;
        __asm__ volatile(
            ".syntax unified\n"
            "1:\n\tldmia r0!, {r1, r2, r3, r4}\n\tsubs r5, r1, r2\n\tadds r1, r1, r2\n\tsubs r2, r3, r4\n\t"
            "adds r3, r3, r4\n\tsubs r6, r5, r2\n\tadds r4, r5, r2\n\tsubs r5, r1, r3\n\tadds r3, r1, r3\n\t"
            "subs r0, #16\n\tstmia r0!, {r3, r4, r5, r6}\n\tcmp r0, %[end]\n\tbne 1b\n\t"
            : "+r"(at)
            : [end] "h"(z + n)
            : "r1", "r2", "r3", "r4", "r5", "r6", "cc", "memory");
        return;
    }
    QORNN_ROLLED
    for (size_t group = 0; group < n; group += 4 * apart) {
        int32_t *at = z + group, *const end = at + apart;
        uint32_t a, b, c, d, t;
        __asm__ volatile(
            ".syntax unified\n"
            "1:\n\tldr %[a], [%[at]]\n\tldr %[b], [%[at], %[next]]\n\tadd %[at], %[pair]\n\t"
            "ldr %[c], [%[at]]\n\tldr %[d], [%[at], %[next]]\n\t"
            "subs %[t], %[a], %[b]\n\tadds %[a], %[a], %[b]\n\tsubs %[b], %[c], %[d]\n\tadds %[c], %[c], %[d]\n\t"
            "subs %[d], %[a], %[c]\n\tstr %[d], [%[at]]\n\tsubs %[d], %[t], %[b]\n\tstr %[d], [%[at], %[next]]\n\t"
            "adds %[a], %[a], %[c]\n\tadds %[t], %[t], %[b]\n\tadd %[at], %[back]\n\t"
            "str %[t], [%[at], %[next]]\n\tstmia %[at]!, {%[a]}\n\tcmp %[at], %[end]\n\tbne 1b\n\t"
            : [at] "+l"(at), [a] "=&l"(a), [b] "=&l"(b), [c] "=&l"(c), [d] "=&l"(d), [t] "=&l"(t)
            : [next] "l"(4 * apart), [pair] "h"(pair), [back] "h"(back), [end] "h"(end)
            : "cc", "memory");
    }
}

#else

QORNN_INLINE void qornn_pass4(int32_t *z, size_t n, size_t apart) {
    QORNN_ROLLED
    for (size_t group = 0; group < n; group += 4 * apart) {
        QORNN_ROLLED
        for (int32_t *at = z + group, *const end = at + apart; at != end; at++) {
            int32_t a = at[0], b = at[apart], c = at[2 * apart], d = at[3 * apart];
            qornn_mix4(&a, &b, &c, &d);
            at[0] = a;
            at[apart] = b;
            at[2 * apart] = c;
            at[3 * apart] = d;
        }
    }
}

#endif

QORNN_INLINE void qornn_pass8(int32_t *z, size_t n, size_t apart) {
    QORNN_ROLLED
    for (size_t group = 0; group < n; group += 8 * apart) {
        QORNN_ROLLED
        for (int32_t *at = z + group, *const end = at + apart; at != end; at++) {
            int32_t a = at[0], b = at[apart], c = at[2 * apart], d = at[3 * apart];
            int32_t e = at[4 * apart], f = at[5 * apart], g = at[6 * apart], h = at[7 * apart];
            qornn_mix4(&a, &b, &c, &d);
            qornn_mix4(&e, &f, &g, &h);
            at[0] = a + e;
            at[4 * apart] = a - e;
            at[apart] = b + f;
            at[5 * apart] = b - f;
            at[2 * apart] = c + g;
            at[6 * apart] = c - g;
            at[3 * apart] = d + h;
            at[7 * apart] = d - h;
        }
    }
}

/* Eight numbers need more registers than the smallest cores have. */
#if defined(__ARM_ARCH_6M__) || defined(__ARM_ARCH_8M_BASE__) || defined(__AVR__)
#define QORNN_BY_EIGHT 0
#else
#define QORNN_BY_EIGHT 1
#endif

/* All stages but those of units less than `least` apart. Written out, not a loop: with n and least constant every distance
   is, and addresses cost nothing. Five times three stages, or eight times two, are enough for 2^16 units. */
QORNN_INLINE void qornn_transform(int32_t *z, size_t n, size_t least) {
    size_t apart = n;
#define QORNN_EIGHT                             \
    if (QORNN_BY_EIGHT && apart >= 8 * least) { \
        apart /= 8;                             \
        qornn_pass8(z, n, apart);               \
    }
#define QORNN_FOUR                \
    if (apart >= 4 * least) {     \
        apart /= 4;               \
        qornn_pass4(z, n, apart); \
    }
    QORNN_EIGHT
    QORNN_EIGHT
    QORNN_EIGHT
    QORNN_EIGHT
    QORNN_EIGHT
    QORNN_FOUR
    QORNN_FOUR
    QORNN_FOUR
    QORNN_FOUR
    QORNN_FOUR
    QORNN_FOUR
    QORNN_FOUR
    QORNN_FOUR
#undef QORNN_EIGHT
#undef QORNN_FOUR
    if (apart == 2 * least) {
        qornn_pass2(z, n, least);
    }
}

#endif
