/* y = rounded_relu(C x + c [+ S skip]) of rows, and the scan of rotations whose drive is U x, as a plain C interface.
 *
 * Arrays are dense, row-major and of float. The caller owns every array. Results do not depend on the number of
 * threads. 0 is returned, or -1 when memory ran out. */
#ifndef QORNN_MIX_H
#define QORNN_MIX_H

#include "rotations.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int64_t rows, n, n_skip, d; /* n_skip is 0 without a skip */
  int64_t top;
  int64_t wide; /* whether float holds C x and S skip, but not their sum: it is then of double */
  double step;  /* a power of two; 0: a plain ReLU */
  int64_t threads;
  const float *x, *skip;  /* (rows, n), (rows, n_skip) */
  const float *C, *S, *c; /* (d, n), (d, n_skip), (d) */
} qornn_mix;

typedef struct {
  int64_t alike;       /* so many rows, one after another, have the same dy: 1, or all steps of a sequence */
  const float *dy;     /* (rows / alike, d) */
  const int8_t *keep;  /* (rows, d): -1 where the gradient passes, else 0 */
  float *dx, *dskip;   /* out; null: not needed */
  float *dC, *dS, *dc; /* out */
} qornn_mix_gradients;

/* y (rows, d), keep (rows, d) and peak (1), the largest sum. */
QORNN_API int qornn_mix_forward(const qornn_mix *problem, float *y, int8_t *keep, float *peak);
QORNN_API int qornn_mix_backward(const qornn_mix *problem, const qornn_mix_gradients *gradients);

typedef struct {
  int64_t n;      /* numbers of a step of x */
  const float *x; /* (B, T, n) */
  const float *U; /* (2p, n) */
  float *dx, *dU; /* of the backward pass, out; dx may be null. Zero past a sequence's end. */
} qornn_driven;

/* The scan of drive = U x, which is never in memory as a whole. `drive` of the gradients is not used. */
QORNN_API int qornn_driven_scan(const qornn_rotations *problem, const qornn_driven *driven, float *last, float *peak);
QORNN_API int qornn_driven_scan_backward(const qornn_rotations *problem, const qornn_rotations_gradients *gradients,
                                         const qornn_driven *driven);

#ifdef __cplusplus
}
#endif
#endif
