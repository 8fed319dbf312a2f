// What the kernel of each instruction set offers to the dispatcher.
#ifndef QORNN_KERNEL_H
#define QORNN_KERNEL_H

#include <cstdint>

#include "mix.h"
#include "recurrence.h"
#include "rotations.h"

namespace qornn {

// Weights in the order the tiles read them; null where the problem has none.
struct Packed {
  const float *W, *U, *V;
  const float *u;  // u/√n_h, padded; null where W is dense
  const float *b;  // padded
};

// Sums over its sequences that one thread gathers on its way back; rows are padded to whole vectors.
struct Sums {
  float *dW;       // (n_h, n_h), or of u (1, n_h); null when not needed, as the others
  float *dU;       // (n_i, n_h): transposed, for codes and few channels
  float *dU_wide;  // (n_h, n_i): for many channels
  float *db;       // (n_h)
  float *dV;       // (n_o, n_h)
  float *scratch;  // scratch_floats() of them
};

struct Kernel {
  const char *name;
  int64_t lanes;  // rows are padded to a multiple of this
  int64_t rows;   // sequences that are best kept together
  // A (K, N) matrix with element (k, j) at k*stride_k + j*stride_j.
  void (*pack)(float *out, const float *in, int64_t K, int64_t N, int64_t stride_k, int64_t stride_j);
  int64_t (*scratch_floats)(const qornn_problem &p, int64_t rows);
  // All steps of sequences first..last-1.
  void (*forward)(const qornn_problem &p, const Packed &w, int64_t first, int64_t last);
  void (*backward)(const qornn_problem &p, const qornn_gradients &g, const Packed &w, const Sums &sums, int64_t first,
                   int64_t last);
  // Rotations, of floats and of doubles. Sequences are scanned in blocks of `rotated`, first..end-1 of them. lambda is a
  // and then b, padded to whole vectors, as are the rows of peak and sums; state holds `rotated` pairs of such rows.
  int64_t rotated;
  void (*scan[2])(const qornn_rotations &p, const void *lambda, void *state, const void *drive, void *last, void *peak,
                  int64_t first, int64_t end);
  void (*scan_backward[2])(const qornn_rotations &p, const qornn_rotations_gradients &g, const void *lambda,
                           void *state, void *sums, int64_t first, int64_t end);
  void (*rounded_relu[2])(const void *acc, double step, int64_t top, void *y, void *peak, int64_t first, int64_t end);
  // Mixes, rows first..end-1, and scans of U x. Matrices have rows of whole vectors: forward they are transposed, for
  // the way back they are not. peaks holds two such rows of d; *_scratch says how many floats a thread needs besides.
  void (*mix)(const qornn_mix &p, const float *C, const float *S, const float *c, float *y, int8_t *keep, float *peaks,
              int64_t first, int64_t end);
  int64_t (*mix_scratch)(const qornn_mix &p);
  void (*mix_backward)(const qornn_mix &p, const qornn_mix_gradients &g, const float *C, const float *S, float *sums,
                       float *scratch, int64_t first, int64_t end);
  void (*driven_scan)(const qornn_rotations &p, const qornn_driven &d, const void *lambda, void *state, const float *U,
                      float *last, float *peak, float *scratch, int64_t first, int64_t end);
  int64_t (*driven_scratch)(const qornn_rotations &p, int64_t n);
  void (*driven_scan_backward)(const qornn_rotations &p, const qornn_rotations_gradients &g, const qornn_driven &d,
                               const void *lambda, void *state, const float *U, float *sums, float *scratch,
                               int64_t first, int64_t end);
};

constexpr int64_t kFewChannels = 4;  // up to here the gradient of U is summed on the fly

// Null where this build lacks the instruction set.
const Kernel *generic_kernel();
const Kernel *avx2_kernel();
const Kernel *avx512_kernel();
const Kernel *neon_kernel();

// The one in use.
const Kernel &chosen_kernel();

}  // namespace qornn
#endif
