// Vectors of LANES floats, the activations on them, and the product that everything is made of. Included by tile.inc.h.

typedef float Vector __attribute__((vector_size(LANES * 4)));
typedef int32_t Mask __attribute__((vector_size(LANES * 4)));

inline Vector load(const float *p) {
  Vector v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline void store(float *p, Vector v) { std::memcpy(p, &v, sizeof v); }

// The same for a row that ends after `n` units: nothing past them is touched.
#if defined(__AVX512F__)
inline Vector load(const float *p, int64_t n) {
  return n >= LANES ? load(p) : (Vector)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
}

inline void store(float *p, Vector v, int64_t n) {
  if (n >= LANES) return store(p, v);
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), (__m512)v);
}
#else
inline Vector load(const float *p, int64_t n) {
  if (n >= LANES) return load(p);
  Vector v{};
  std::memcpy(&v, p, static_cast<size_t>(n) * 4);
  return v;
}

inline void store(float *p, Vector v, int64_t n) {
  if (n >= LANES) return store(p, v);
  std::memcpy(p, &v, static_cast<size_t>(n) * 4);
}
#endif

inline Vector splat(float a) { return a - Vector{}; }

inline Vector select(Mask m, Vector a, Vector b) { return m ? a : b; }

inline Vector relu(Vector z) { return select(z < Vector{}, Vector{}, z); }

inline Vector sign(Vector z) {  // −1, 0 or 1
  const Vector one = splat(1.0f), zero{};
  return select(z > zero, one, select(z < zero, -one, zero));
}

// A rational approximation on ±7.9, past which float32's tanh is 1.
inline Vector tanh(Vector z) {
  const Vector limit = splat(7.90531110763549805f);
  const Vector x = select(z > limit, limit, select(z < -limit, -limit, z));  // NaN compares false and stays
  const Vector s = x * x;
  Vector p = splat(-2.76076847742355e-16f);
  for (float c : {2.00018790482477e-13f, -8.60467152213735e-11f, 5.12229709037114e-08f, 1.48572235717979e-05f,
                  6.37261928875436e-04f, 4.89352455891786e-03f})
    p = p * s + c;
  Vector q = splat(1.19825839466702e-06f);
  for (float c : {1.18534705686654e-04f, 2.26843463243900e-03f, 4.89352518554385e-03f}) q = q * s + c;
  return x * p / q;
}

// σ(z + b). modReLU clips |z| + b and keeps the sign; NaN goes through all of them, as in torch.
template <int A>
inline Vector activate(Vector z, Vector b) {
  if (A == QORNN_MODRELU) return relu(select(z < Vector{}, -z, z) + b) * sign(z);
  z += b;
  return A == QORNN_RELU ? relu(z) : A == QORNN_TANH ? tanh(z) : z;
}

// g·σ'(z), with σ' read off h = σ(z).
template <int A>
inline Vector times_derivative(Vector g, Vector h) {
  if (A == QORNN_IDENTITY) return g;
  if (A == QORNN_TANH) return g * (splat(1.0f) - h * h);
  return select(h == Vector{}, Vector{}, g);
}

// sum (R, V·LANES) += a · panel (K, V·LANES), with a's element (r, k) at r*stride_r + k*stride_k: all the time goes here.
// With Relu, relu(a) is multiplied.
template <bool Relu = false, int R, int V>
inline __attribute__((always_inline)) void accumulate(Vector (&sum)[R][V], const float *a, int64_t stride_r,
                                                      int64_t stride_k, const float *panel, int64_t K) {
  for (int64_t k = 0; k < K; ++k) {
    Vector row[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) row[v] = load(panel + (k * V + v) * LANES);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vector element = splat(a[r * stride_r + k * stride_k]), broadcast = Relu ? relu(element) : element;
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[r][v] += broadcast * row[v];
    }
  }
}

// Asks for R rows of V vectors, which are needed only once the sums are done.
template <int R, int V, int Write>
inline __attribute__((always_inline)) void prefetch(const float *rows, int64_t ld) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
    for (int64_t at = 0; at < V * LANES; at += 16) __builtin_prefetch(rows + r * ld + at, Write, 3);
}

// body(r, v) for every vector of a tile; r and v are constants in it, so that sums stay in registers.
template <int R, int V, typename Body>
inline __attribute__((always_inline)) void each(Body body) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) body(r, v);
}
