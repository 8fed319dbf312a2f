// S h for Sylvester's S by n log2 n additions, in place of a product with a matrix. Included by tile.inc.h.
//
// Stage s adds and subtracts units whose numbers differ in bit s alone. The lowest stages stay inside a vector; of the
// others as many as the registers hold are done between one load and one store, so that up to n = LANES·kTogether a row
// is read and written once.

constexpr int kTogether = ROWS * VECTORS >= 16 ? 16 : 8;  // vectors: about half the registers

template <int Apart, int... Lane>
inline __attribute__((always_inline)) Vector pairs_within(Vector v, std::integer_sequence<int, Lane...>) {
#if defined(__clang__)
  const Vector other = __builtin_shufflevector(v, v, (Lane ^ Apart)...);
#else
  const Vector other = __builtin_shuffle(v, Mask{(Lane ^ Apart)...});
#endif
  return v * Vector{(Lane & Apart ? -1.0f : 1.0f)...} + other;
}

// The stages within a vector, of which the first n lanes count.
template <int Apart = 1>
inline __attribute__((always_inline)) Vector transform_within(Vector v, int64_t n) {
  if constexpr (Apart < LANES) {
    if (n > Apart)
      return transform_within<2 * Apart>(pairs_within<Apart>(v, std::make_integer_sequence<int, LANES>{}), n);
  }
  return v;
}

template <int M, int Apart = 1>
inline __attribute__((always_inline)) void transform_across(Vector (&v)[M]) {
  if constexpr (Apart < M) {
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i)
      if (!(i & Apart)) {
        const Vector a = v[i], b = v[i + Apart];
        v[i] = a + b;
        v[i + Apart] = a - b;
      }
    transform_across<M, 2 * Apart>(v);
  }
}

// log2 M stages between vectors that are `apart` vectors apart, and before the first of them those within a vector.
template <int M>
inline void transform_pass(float *out, const float *in, int64_t n, int64_t apart, const float *factors) {
  for (int64_t group = 0; group < n; group += M * apart * LANES)
    for (int64_t unit = group; unit < group + apart * LANES; unit += LANES) {
      Vector v[M];
#pragma GCC unroll 16
      for (int m = 0; m < M; ++m) v[m] = load(in + unit + m * apart * LANES);
      if (apart == 1 && factors)
#pragma GCC unroll 16
        for (int m = 0; m < M; ++m) v[m] *= load(factors + unit + m * LANES);
      if (apart == 1)
#pragma GCC unroll 16
        for (int m = 0; m < M; ++m) v[m] = transform_within(v[m], LANES);
      transform_across(v);
#pragma GCC unroll 16
      for (int m = 0; m < M; ++m) store(out + unit + m * apart * LANES, v[m]);
    }
}

// out = S (factors ⊙ in), n a power of two; without factors, S in.
void transform(float *out, const float *in, int64_t n, const float *factors) {
  if (n < LANES) {
    const Vector v = load(in, n);
    return store(out, transform_within(factors ? v * load(factors, n) : v, n), n);
  }
  int64_t apart = 1;
  do {
    const int64_t M = std::min<int64_t>(kTogether, n / LANES / apart);
    if (M == 16)
      transform_pass<std::min(16, kTogether)>(out, in, n, apart, factors);
    else if (M == 8)
      transform_pass<8>(out, in, n, apart, factors);
    else if (M == 4)
      transform_pass<4>(out, in, n, apart, factors);
    else if (M == 2)
      transform_pass<2>(out, in, n, apart, factors);
    else
      transform_pass<1>(out, in, n, apart, factors);
    in = out;
    apart *= M;
  } while (apart * LANES < n);
}
