// The kernel, written once over vectors of LANES floats and compiled once for each instruction set.
//
// The including file defines ISA (a namespace), LANES, ROWS and VECTORS: a tile is ROWS sequences by VECTORS·LANES
// units, sized so that its sums, one row of a panel and a broadcast fit the registers.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include "kernel.h"

namespace qornn {
namespace ISA {
namespace {

#include "vector.inc.h"
#include "hadamard.inc.h"

inline int64_t padded(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

// A row length that does not map every row to the same few cache sets.
inline int64_t spread(int64_t n) { return padded(n) + (padded(n) % 64 ? 0 : 16); }

// A panel is VECTORS vectors of columns, the last one fewer; the panel at column j starts at K·j.
template <typename Body>
void for_each_panel(int64_t columns, Body body) {
  const int64_t total = padded(columns) / LANES;
  for (int64_t v = 0; v < total; v += VECTORS) body(v * LANES, static_cast<int>(std::min<int64_t>(VECTORS, total - v)));
}

// Blocks of at most ROWS rows, nearly equal.
template <typename Body>
void for_each_block(int64_t first, int64_t last, Body body) {
  const int64_t blocks = (last - first + ROWS - 1) / ROWS;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t from = first + (last - first) * i / blocks, to = first + (last - first) * (i + 1) / blocks;
    body(from, static_cast<int>(to - from));
  }
}

// Calls Tile::run<R, V>(arguments...) for run-time R and V.
template <typename Tile, typename... Arguments>
struct Table {
  using Function = void (*)(Arguments...);
  template <int... I>
  static constexpr std::array<Function, sizeof...(I)> make(std::integer_sequence<int, I...>) {
    return {{&Tile::template run<I / VECTORS + 1, I % VECTORS + 1>...}};
  }
  static constexpr auto entries = make(std::make_integer_sequence<int, ROWS * VECTORS>{});
};

template <typename Tile, typename... Arguments>
inline void dispatch(int rows, int vectors, Arguments... arguments) {
  Table<Tile, Arguments...>::entries[static_cast<size_t>((rows - 1) * VECTORS + vectors - 1)](arguments...);
}

void pack(float *out, const float *in, int64_t K, int64_t N, int64_t stride_k, int64_t stride_j) {
  for_each_panel(N, [&](int64_t unit, int vectors) {
    float *panel = out + K * unit;
    const int64_t width = vectors * LANES, there = std::min(width, N - unit);
    for (int64_t k = 0; k < K; ++k, panel += width) {
      const float *from = in + k * stride_k + unit * stride_j;
      if (stride_j == 1)
        std::memcpy(panel, from, static_cast<size_t>(there) * 4);
      else
        for (int64_t j = 0; j < there; ++j) panel[j] = from[j * stride_j];
      std::fill(panel + there, panel + width, 0.0f);
    }
  });
}

inline bool past(const qornn_problem &p, int64_t t, int64_t row) { return p.lengths && t >= p.lengths[row]; }

inline bool all_past(const qornn_problem &p, int64_t t, int64_t row, int rows) {
  for (int r = 0; r < rows; ++r)
    if (!past(p, t, row + r)) return false;
  return true;
}

// body(row, rows, unit, vectors) for all tiles: those of one panel of a dense W together, or else those of some sequences,
// which start(row, rows) is called for before.
template <typename Start, typename Body>
void for_each_tile(const qornn_problem &p, int64_t first, int64_t last, Start start, Body body) {
  if (p.u)
    return for_each_block(first, last, [&](int64_t row, int rows) {
      start(row, rows);
      for_each_panel(p.n_h, [&](int64_t unit, int vectors) { body(row, rows, unit, vectors); });
    });
  for_each_panel(p.n_h, [&](int64_t unit, int vectors) {
    for_each_block(first, last, [&](int64_t row, int rows) { body(row, rows, unit, vectors); });
  });
}

#include "forward.inc.h"
#include "backward.inc.h"
#include "rounding.inc.h"
#include "rotations.inc.h"
#include "gemm.inc.h"
#include "mix.inc.h"
#include "driven.inc.h"

void forward(const qornn_problem &p, const Packed &w, int64_t first, int64_t last) {
  static constexpr decltype(&forward_as<0>) table[] = {forward_as<0>, forward_as<1>, forward_as<2>, forward_as<3>};
  table[p.activation](p, w, first, last);
}

void backward(const qornn_problem &p, const qornn_gradients &g, const Packed &w, const Sums &sums, int64_t first,
              int64_t last) {
  static constexpr decltype(&backward_as<0>) table[] = {backward_as<0>, backward_as<1>, backward_as<2>, backward_as<3>};
  table[p.activation](p, g, w, sums, first, last);
}

}  // namespace

#define QORNN_STRING_(x) #x
#define QORNN_STRING(x) QORNN_STRING_(x)
const Kernel kernel = {QORNN_STRING(ISA),
                       LANES,
                       ROWS,
                       pack,
                       scratch_floats,
                       forward,
                       backward,
                       ROTATED,
                       {scan<float>, scan<double>},
                       {scan_backward<float>, scan_backward<double>},
                       {rounded_relu<float>, rounded_relu<double>},
                       mix,
                       mix_scratch,
                       mix_backward,
                       driven_scan,
                       driven_scratch,
                       driven_scan_backward};

}  // namespace ISA
}  // namespace qornn
