// Vectors of floats or doubles, and rounding on them. Included by tile.inc.h after vector.inc.h.

typedef double Doubles __attribute__((vector_size(LANES * 4)));
typedef int64_t WideMask __attribute__((vector_size(LANES * 4)));

template <typename Number>
struct Of;
template <>
struct Of<float> {
  typedef Vector Numbers;
  typedef Mask Bits;
};
template <>
struct Of<double> {
  typedef Doubles Numbers;
  typedef WideMask Bits;
};
template <typename Number>
using Numbers = typename Of<Number>::Numbers;
template <typename Number>
using Bits = typename Of<Number>::Bits;
template <typename Number>
constexpr int64_t kLanes = LANES * 4 / static_cast<int64_t>(sizeof(Number));

inline Doubles load(const double *p) {
  Doubles v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline void store(double *p, Doubles v) { std::memcpy(p, &v, sizeof v); }

#if defined(__AVX512F__)
inline Doubles load(const double *p, int64_t n) {
  return n >= LANES / 2 ? load(p) : (Doubles)_mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1u), p);
}

inline void store(double *p, Doubles v, int64_t n) {
  if (n >= LANES / 2) return store(p, v);
  _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1u), (__m512d)v);
}
#else
inline Doubles load(const double *p, int64_t n) {
  if (n >= LANES / 2) return load(p);
  Doubles v{};
  std::memcpy(&v, p, static_cast<size_t>(n) * 8);
  return v;
}

inline void store(double *p, Doubles v, int64_t n) {
  if (n >= LANES / 2) return store(p, v);
  std::memcpy(p, &v, static_cast<size_t>(n) * 8);
}
#endif

typedef float HalfVector __attribute__((vector_size(LANES * 2)));

// Half i of the numbers as doubles, and both halves as floats again, rounded to nearest.
inline Doubles widened(Vector v, int i) {
  HalfVector half;
  std::memcpy(&half, reinterpret_cast<const char *>(&v) + i * static_cast<int>(sizeof half), sizeof half);
  return __builtin_convertvector(half, Doubles);
}

inline Vector narrowed(Doubles low, Doubles high) {
  const HalfVector halves[2] = {__builtin_convertvector(low, HalfVector), __builtin_convertvector(high, HalfVector)};
  Vector v;
  std::memcpy(&v, halves, sizeof v);
  return v;
}

inline Doubles splat(double a) { return a - Doubles{}; }

// The smaller and the larger; v where v is NaN. Masks that hide nothing: GCC 12 warns of the plain forms, wrongly.
#if defined(__AVX512F__)
constexpr __mmask16 kAllFloats = 0xffff;
constexpr __mmask8 kAllDoubles = 0xff;
inline Vector at_most(Vector v, Vector limit) {
  return (Vector)_mm512_maskz_min_ps(kAllFloats, (__m512)limit, (__m512)v);
}

inline Vector at_least(Vector v, Vector limit) {
  return (Vector)_mm512_maskz_max_ps(kAllFloats, (__m512)limit, (__m512)v);
}

inline Doubles at_most(Doubles v, Doubles limit) {
  return (Doubles)_mm512_maskz_min_pd(kAllDoubles, (__m512d)limit, (__m512d)v);
}

inline Doubles at_least(Doubles v, Doubles limit) {
  return (Doubles)_mm512_maskz_max_pd(kAllDoubles, (__m512d)limit, (__m512d)v);
}
#elif defined(__AVX2__)
inline Vector at_most(Vector v, Vector limit) { return (Vector)_mm256_min_ps((__m256)limit, (__m256)v); }
inline Vector at_least(Vector v, Vector limit) { return (Vector)_mm256_max_ps((__m256)limit, (__m256)v); }
inline Doubles at_most(Doubles v, Doubles limit) { return (Doubles)_mm256_min_pd((__m256d)limit, (__m256d)v); }
inline Doubles at_least(Doubles v, Doubles limit) { return (Doubles)_mm256_max_pd((__m256d)limit, (__m256d)v); }
#else
template <typename V>
inline V at_most(V v, V limit) {
  return limit < v ? limit : v;
}

template <typename V>
inline V at_least(V v, V limit) {
  return limit > v ? limit : v;
}
#endif

// Towards zero; NaN stays. The portable one goes through int32, so it needs |v| < 2^31.
#if defined(__AVX2__)
constexpr int kTowardsZero = 11;  // and without exceptions
#endif
#if defined(__AVX512F__)
inline Vector trunc(Vector v) { return (Vector)_mm512_maskz_roundscale_ps(kAllFloats, (__m512)v, kTowardsZero); }
inline Doubles trunc(Doubles v) { return (Doubles)_mm512_maskz_roundscale_pd(kAllDoubles, (__m512d)v, kTowardsZero); }
#elif defined(__AVX2__)
inline Vector trunc(Vector v) { return (Vector)_mm256_round_ps((__m256)v, kTowardsZero); }
inline Doubles trunc(Doubles v) { return (Doubles)_mm256_round_pd((__m256d)v, kTowardsZero); }
#elif defined(__aarch64__) && defined(__ARM_NEON)
inline Vector trunc(Vector v) { return (Vector)vrndq_f32((float32x4_t)v); }
inline Doubles trunc(Doubles v) { return (Doubles)vrndq_f64((float64x2_t)v); }
#else
typedef int32_t HalfMask __attribute__((vector_size(LANES * 2)));
inline Vector trunc(Vector v) {
  const Mask number = v == v;
  const Vector whole = __builtin_convertvector(__builtin_convertvector(number ? v : Vector{}, Mask), Vector);
  return number ? whole : v;
}

inline Doubles trunc(Doubles v) {
  const WideMask number = v == v;
  const Doubles whole = __builtin_convertvector(__builtin_convertvector(number ? v : Doubles{}, HalfMask), Doubles);
  return number ? whole : v;
}
#endif

// Every bit but the sign's.
template <typename Number>
inline Bits<Number> unsigned_bits() {
  return (Bits<Number>)(~Bits<Number>{} ^ (Bits<Number>)-Numbers<Number>{});
}

// Without the sign, as integers: they are in the order of the numbers, and NaN is above them all.
template <typename Number>
inline Bits<Number> magnitude(Numbers<Number> v) {
  return (Bits<Number>)v & unsigned_bits<Number>();
}

template <typename B>
inline B larger(B a, B b) {
  return a > b ? a : b;
}

// The nearest whole number within ±top, ties away from zero.
template <typename Number>
inline Numbers<Number> rounded(Numbers<Number> v, Numbers<Number> top) {
  using B = Bits<Number>;
  v = at_least(at_most(v, top), -top);
  const B sign = ~unsigned_bits<Number>() & (B)v;
  return trunc(v + (Numbers<Number>)(sign | (B)splat(static_cast<Number>(0.5))));
}
