/* The few instructions of Armv7E-M that C has no words for. */
#ifndef QORNN_DSP_H
#define QORNN_DSP_H

#include "qornn.h"

/* Two 16-bit states as one word, the first in the low half. */
QORNN_INLINE uint32_t qornn_pair(const int16_t *h) {
    uint32_t pair;
    __builtin_memcpy(&pair, h, sizeof pair);
    return pair;
}

/* sum + low(a) low(b) + high(a) high(b), modulo 2^32. Assembly: not every toolchain comes with arm_acle.h. */
QORNN_INLINE uint32_t qornn_smlad(uint32_t a, uint32_t b, uint32_t sum) {
    uint32_t result;
    __asm__("smlad %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
}

/* Bytes 0 and 2, sign-extended to halves; of `word` rotated by 8, bytes 1 and 3. */
QORNN_INLINE uint32_t qornn_sxtb16(uint32_t word) {
    uint32_t result;
    __asm__("sxtb16 %0, %1" : "=r"(result) : "r"(word));
    return result;
}

QORNN_INLINE uint32_t qornn_sxtb16_ror8(uint32_t word) {
    uint32_t result;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(result) : "r"(word));
    return result;
}

#endif
