// What the dispatchers of rotations and mixes share: threads, zeroed memory, and λ in padded rows.
#ifndef QORNN_JOB_H
#define QORNN_JOB_H

#include <algorithm>
#include <cstring>
#include <new>

#include "kernel.h"
#include "larger.h"
#include "share.h"

namespace qornn {

constexpr int64_t kWorthAThread = 1 << 15;  // numbers moved, some ten microseconds: what waking a thread costs

inline int thread_count(int64_t wanted, int64_t shares, int64_t numbers) {
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
  const Kernel &kernel = chosen_kernel();
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

}  // namespace qornn
#endif
