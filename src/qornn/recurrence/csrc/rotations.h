/* z_t = R(lambda z_{t-1} + drive_t) on p complex units, its gradients, and the rounded ReLU, as a plain C interface.
 *
 * Arrays are dense and row-major, of float, or of double where `wide` is not 0. A row of 2p is p real parts, then p
 * imaginary parts. The caller owns every array named here. Results do not depend on the number of threads. */
#ifndef QORNN_ROTATIONS_H
#define QORNN_ROTATIONS_H

#include "recurrence.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int64_t B, T, p;
  int64_t top;  /* states are rounded and held within -top..top; 0: neither */
  double scale; /* `states` holds them times this, a power of two; z0 and last are as they are */
  int32_t threads, wide;
  const void *a, *b;      /* (p): lambda = a + ib */
  const void *z0;         /* (B, 2p) */
  const int64_t *lengths; /* (B), null: all of length T */
  void *states;           /* (B, T, 2p): written by forward, read by backward; zero past a sequence's end */
} qornn_rotations;

typedef struct {
  const void *states; /* (B, T, 2p), gradient of the states; may be null */
  const void *last;   /* (B, 2p), gradient of the state at each sequence's end; may be null */
  void *drive;        /* (B, T, 2p), out; zero past a sequence's end */
  void *a, *b;        /* (p), out */
  void *z0;           /* (B, 2p), out */
} qornn_rotations_gradients;

/* 0, or -1 when memory ran out. last (B, 2p): the state at each sequence's end; peak (p): the largest |value| of either
 * part before rounding and saturation. */
QORNN_API int qornn_scan(const qornn_rotations *problem, const void *drive, void *last, void *peak);
QORNN_API int qornn_scan_backward(const qornn_rotations *problem, const qornn_rotations_gradients *gradients);

/* y = step min(R(relu(acc)/step), top), or relu(acc) where step is 0; peak (1): the largest of acc. `n` of each. */
QORNN_API int qornn_rounded_relu(int64_t n, const void *acc, double step, int64_t top, int32_t threads, int32_t wide,
                                 void *y, void *peak);

#ifdef __cplusplus
}
#endif
#endif
