/* Include before any function of a file that rounds floats: products and sums are never fused or reordered. */
#ifndef QORNN_NOFUSE_H
#define QORNN_NOFUSE_H

#if defined(__FAST_MATH__)
#error "qornn: -ffast-math reorders float sums; the readout must equal the simulation bit for bit"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

#endif
