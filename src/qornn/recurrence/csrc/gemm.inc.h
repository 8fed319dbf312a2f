// Products of narrow matrices, with what follows them done in registers. Included by tile.inc.h.
//
// Weights of a layer fit the first-level cache, so a panel is a whole matrix with padded rows, and every row of inputs
// is read once. Each element is summed in the order of k: what a row gives does not depend on the rows beside it.

// A (K, N) matrix in rows of whole vectors: zeros past N.
struct Panel {
  const float *at;
  int64_t ld;
};

// sum (R, V·LANES) += a · panel, with a's element (r, k) at r*stride_r + k*stride_k.
template <int R, int V>
inline __attribute__((always_inline)) void add_product(Vector (&sum)[R][V], const float *a, int64_t stride_r,
                                                       int64_t stride_k, const float *panel, int64_t ld, int64_t K) {
  for (int64_t k = 0; k < K; ++k) {
    Vector row[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) row[v] = load(panel + k * ld + v * LANES);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vector element = splat(a[r * stride_r + k * stride_k]);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[r][v] += element * row[v];
    }
  }
}

// body(rows' first, rows, unit, vectors) for all tiles of a (rows, units) result; units are split nearly equally.
template <typename Body>
inline void for_each_product(int64_t rows, int64_t units, Body body) {
  const int64_t total = padded(units) / LANES, parts = (total + VECTORS - 1) / VECTORS;
  for (int64_t row = 0; row < rows; row += ROWS)
    for (int64_t i = 0; i < parts; ++i) {
      const int64_t from = total * i / parts, to = total * (i + 1) / parts;
      body(row, static_cast<int>(std::min<int64_t>(ROWS, rows - row)), from * LANES, static_cast<int>(to - from));
    }
}

// out (rows, N) = a (rows, K) · panel.
struct Product {
  const float *a;
  int64_t lda, K;
  Panel panel;
  float *out;
  int64_t N;  // also the length of out's rows

  template <int R, int V>
  static void run(const Product &p, int64_t row, int64_t unit) {
    Vector sum[R][V] = {};
    add_product(sum, p.a + row * p.lda, p.lda, 1, p.panel.at + unit, p.panel.ld, p.K);
    each<R, V>([&](int r, int v) {
      const int64_t at = unit + v * LANES;
      store(p.out + (row + r) * p.N + at, sum[r][v], p.N - at);
    });
  }
};

inline void multiply(const Product &p, int64_t rows) {
  for_each_product(rows, p.N, [&](int64_t row, int count, int64_t unit, int vectors) {
    dispatch<Product, const Product &, int64_t, int64_t>(count, vectors, p, row, unit);
  });
}

// sums (M, padded N) += aᵀ · b over `count` rows of a (count, M) and b (count, padded N).
struct Outer {
  const float *a;
  int64_t lda;
  const float *b;
  int64_t ldb, count;
  float *sums;
  int64_t ld;

  template <int R, int V>
  static void run(const Outer &p, int64_t row, int64_t unit) {
    Vector sum[R][V];
    float *to = p.sums + row * p.ld + unit;
    each<R, V>([&](int r, int v) { sum[r][v] = load(to + r * p.ld + v * LANES); });
    add_product(sum, p.a + row, 1, p.lda, p.b + unit, p.ldb, p.count);
    each<R, V>([&](int r, int v) { store(to + r * p.ld + v * LANES, sum[r][v]); });
  }
};

inline void add_outer(const Outer &p, int64_t M, int64_t N) {
  for_each_product(M, N, [&](int64_t row, int count, int64_t unit, int vectors) {
    dispatch<Outer, const Outer &, int64_t, int64_t>(count, vectors, p, row, unit);
  });
}

// `count` rows of n numbers as rows of whole vectors: themselves where they are, else a copy with zeros past their ends.
inline const float *whole_vectors(const float *rows, int64_t count, int64_t n, float *copy) {
  const int64_t N = padded(n);
  if (N == n) return rows;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(copy + i * N, rows + i * n, static_cast<size_t>(n) * 4);
    std::fill(copy + i * N + n, copy + (i + 1) * N, 0.0f);
  }
  return copy;
}
