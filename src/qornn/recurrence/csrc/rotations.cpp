// Pads λ, gives every thread its own blocks of sequences, and puts their maxima and sums together.

#include "rotations.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "kernel.h"
#include "share.h"

namespace {

using qornn::Kernel;
using qornn::share;
using qornn::without_exceptions;

constexpr int64_t kWorthAThread = 1 << 15;  // numbers moved, some ten microseconds: what waking a thread costs

int thread_count(int64_t wanted, int64_t shares, int64_t numbers) {
  return static_cast<int>(std::max<int64_t>(1, std::min({wanted, shares, 1 + numbers / kWorthAThread})));
}

// Zeros, aligned for any vector.
template <typename Number>
class Zeros {
 public:
  explicit Zeros(int64_t count) : data_(new (std::align_val_t(64)) Number[static_cast<size_t>(count)]()) {}
  ~Zeros() { ::operator delete[](data_, std::align_val_t(64)); }
  Zeros(const Zeros &) = delete;
  Zeros &operator=(const Zeros &) = delete;
  Number *get() const { return data_; }

 private:
  Number *data_;
};

// What both ways need: the blocks, how many threads share them, and λ in padded rows.
template <typename Number>
struct Job {
  const Kernel &kernel = qornn::chosen_kernel();
  int64_t lanes = kernel.lanes * 4 / static_cast<int64_t>(sizeof(Number));
  int64_t P, blocks;
  int threads;
  Zeros<Number> lambda, state;

  explicit Job(const qornn_rotations &p)
      : P((p.p + lanes - 1) / lanes * lanes),
        blocks((p.B + kernel.rotated - 1) / kernel.rotated),
        threads(thread_count(p.threads, blocks, p.B * p.T * 2 * p.p)),
        lambda(2 * P),
        state(threads * state_size()) {
    std::memcpy(lambda.get(), p.a, static_cast<size_t>(p.p) * sizeof(Number));
    std::memcpy(lambda.get() + P, p.b, static_cast<size_t>(p.p) * sizeof(Number));
  }

  int64_t state_size() const { return kernel.rotated * 2 * P; }
  Number *state_of(int thread) const { return state.get() + thread * state_size(); }
};

// The larger; NaN where either is.
template <typename Number>
Number larger(Number a, Number b) {
  return a != a || a > b ? a : b;  // where b is NaN no comparison holds
}

template <typename Number>
void run_scan(const qornn_rotations &p, const void *drive, void *last, void *peak) {
  const Job<Number> job(p);
  const Zeros<Number> peaks(job.threads * job.P);
  share(job.blocks, job.threads, [&](int i, int64_t first, int64_t end) {
    job.kernel.scan[sizeof(Number) == 8](p, job.lambda.get(), job.state_of(i), drive, last, peaks.get() + i * job.P,
                                         first, end);
  });
  for (int64_t j = 0; j < p.p; ++j) {
    Number most = 0;
    for (int i = 0; i < job.threads; ++i) most = larger(most, peaks.get()[i * job.P + j]);
    static_cast<Number *>(peak)[j] = most;
  }
}

template <typename Number>
void run_scan_backward(const qornn_rotations &p, const qornn_rotations_gradients &g) {
  const Job<Number> job(p);
  const Zeros<Number> sums(job.blocks * 2 * job.P);
  share(job.blocks, job.threads, [&](int i, int64_t first, int64_t end) {
    job.kernel.scan_backward[sizeof(Number) == 8](p, g, job.lambda.get(), job.state_of(i), sums.get(), first, end);
  });
  for (int64_t j = 0; j < p.p; ++j) {
    Number da = 0, db = 0;
    for (int64_t block = 0; block < job.blocks; ++block) {  // in the blocks' order, whoever summed them
      da += sums.get()[block * 2 * job.P + j];
      db += sums.get()[(block * 2 + 1) * job.P + j];
    }
    static_cast<Number *>(g.a)[j] = da / static_cast<Number>(p.scale);  // of scaled states until here
    static_cast<Number *>(g.b)[j] = db / static_cast<Number>(p.scale);
  }
}

template <typename Number>
void run_rounded_relu(int64_t n, const void *acc, double step, int64_t top, int32_t wanted, void *y, void *peak) {
  const Kernel &kernel = qornn::chosen_kernel();
  const int threads = thread_count(wanted, n, n);
  const Zeros<Number> peaks(threads);
  share(n, threads, [&](int i, int64_t first, int64_t end) {
    kernel.rounded_relu[sizeof(Number) == 8](acc, step, top, y, peaks.get() + i, first, end);
  });
  Number most = peaks.get()[0];
  for (int i = 1; i < threads; ++i) most = larger(most, peaks.get()[i]);
  *static_cast<Number *>(peak) = most;
}

}  // namespace

extern "C" int qornn_scan(const qornn_rotations *p, const void *drive, void *last, void *peak) {
  return without_exceptions([&] { (p->wide ? run_scan<double> : run_scan<float>)(*p, drive, last, peak); });
}

extern "C" int qornn_scan_backward(const qornn_rotations *p, const qornn_rotations_gradients *g) {
  return without_exceptions([&] { (p->wide ? run_scan_backward<double> : run_scan_backward<float>)(*p, *g); });
}

extern "C" int qornn_rounded_relu(int64_t n, const void *acc, double step, int64_t top, int32_t threads, int32_t wide,
                                  void *y, void *peak) {
  return without_exceptions(
      [&] { (wide ? run_rounded_relu<double> : run_rounded_relu<float>)(n, acc, step, top, threads, y, peak); });
}
