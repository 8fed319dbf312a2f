/* Include before any function of a file that rounds floats: products and sums are never fused or reordered. */
#ifndef QORNN_NOFUSE_H
#define QORNN_NOFUSE_H

#include "qornn.h"

#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__)
#error "qornn: -ffast-math and -fassociative-math reorder float sums; the readout must equal the simulation bit for bit"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

/* A product, rounded to float32. With -ffp-contract=fast clang fuses whatever the pragma says, unless the product passes
   through a register it knows nothing of: two moves on a Cortex-M4, none where floats are integers in software. */
QORNN_INLINE float qornn_product(float a, float b) {
#if defined(__clang__)
    union {
        float value;
        uint32_t bits;
    } product;
    product.value = a * b;
    __asm__("" : "+r"(product.bits));
    return product.value;
#else
    return a * b;
#endif
}

#endif
