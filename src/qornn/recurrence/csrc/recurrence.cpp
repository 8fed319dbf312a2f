// Chooses the instruction set, packs the weights once per call, and gives every thread its own sequences for all steps.

#include "recurrence.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "../../runtime/host/qornn_cpu.h"
#include "kernel.h"
#include "share.h"

namespace {

using qornn::Kernel;
using qornn::Packed;
using qornn::share;
using qornn::Sums;
using qornn::without_exceptions;

constexpr double kWorthAThread = 2e6;  // multiply-adds, about what starting a thread costs

const Kernel *supported(const Kernel *kernel) {
  if (!kernel) return nullptr;
#if defined(__x86_64__)
  static const unsigned here = qornn_cpu();
  if (!std::strcmp(kernel->name, "avx512") && !(here & QORNN_HAS_AVX512F)) return nullptr;
  if (!std::strcmp(kernel->name, "avx2") && !(here & QORNN_HAS_AVX2 && here & QORNN_HAS_FMA)) return nullptr;
#endif
  return kernel;
}

// Best first.
std::vector<const Kernel *> kernels() {
  std::vector<const Kernel *> found;
  for (const Kernel *k : {qornn::avx512_kernel(), qornn::avx2_kernel(), qornn::neon_kernel(), qornn::generic_kernel()})
    if (supported(k)) found.push_back(k);
  return found;
}

std::atomic<const Kernel *> &current() {
  static std::atomic<const Kernel *> chosen{kernels().front()};
  return chosen;
}

class Buffer {
 public:
  enum Content { kAny, kZeros };
  Buffer(int64_t count, Content content) {
    const size_t size = static_cast<size_t>(std::max<int64_t>(count, 1));
    data_ = content == kZeros ? new (std::align_val_t(64)) float[size]() : new (std::align_val_t(64)) float[size];
  }
  ~Buffer() { ::operator delete[](data_, std::align_val_t(64)); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  float *get() const { return data_; }

 private:
  float *data_;
};

int64_t padded(const Kernel &kernel, int64_t units) { return (units + kernel.lanes - 1) / kernel.lanes * kernel.lanes; }

int thread_count(const qornn_problem &p, const Kernel &kernel) {
  const double a_unit = p.u ? std::log2(static_cast<double>(p.n_h)) : static_cast<double>(p.n_h);
  const double work = static_cast<double>(p.B) * static_cast<double>(p.T) * static_cast<double>(p.n_h) *
                      (a_unit + static_cast<double>(p.n_i));
  const int64_t blocks = (p.B + kernel.rows - 1) / kernel.rows;
  const int64_t useful = std::min<int64_t>(blocks, 1 + static_cast<int64_t>(std::min(work / kWorthAThread, 1e6)));
  return static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(p.threads, useful)));
}

// W packed, or u/√n_h padded.
class Recurrent {
 public:
  Recurrent(const qornn_problem &p, const Kernel &kernel, int64_t stride_k, int64_t stride_j)
      : structured_(p.u), data_(padded(kernel, p.n_h) * (p.u ? 1 : p.n_h), p.u ? Buffer::kZeros : Buffer::kAny) {
    if (!p.u) kernel.pack(data_.get(), p.W, p.n_h, p.n_h, stride_k, stride_j);
    const double root = std::sqrt(static_cast<double>(p.n_h));
    for (int64_t j = 0; p.u && j < p.n_h; ++j) data_.get()[j] = static_cast<float>(p.u[j] / root);
  }
  const float *dense() const { return structured_ ? nullptr : data_.get(); }
  const float *signs() const { return structured_ ? data_.get() : nullptr; }

 private:
  bool structured_;
  Buffer data_;
};

void run_forward(const qornn_problem &p) {
  const Kernel &kernel = *current().load();
  const int64_t width = padded(kernel, p.n_h);
  const Recurrent W(p, kernel, 1, p.n_h);  // element (k, j) is W[j][k]
  Buffer U(p.n_i * width, Buffer::kAny), b(width, Buffer::kZeros);
  Buffer V(p.V ? p.n_h * padded(kernel, p.n_o) : 0, Buffer::kAny);
  kernel.pack(U.get(), p.U, p.n_i, p.n_h, 1, p.n_i);
  if (p.V) kernel.pack(V.get(), p.V, p.n_h, p.n_o, 1, p.n_h);
  if (p.b) std::memcpy(b.get(), p.b, static_cast<size_t>(p.n_h) * 4);
  const Packed packed{W.dense(), U.get(), V.get(), W.signs(), b.get()};
  share(p.B, thread_count(p, kernel),
        [&](int, int64_t first, int64_t last) { kernel.forward(p, packed, first, last); });
}

// One set of sums per thread, added up in the threads' order, so that the result does not depend on timing.
class PartialSums {
 public:
  PartialSums(const Kernel &kernel, int threads, int64_t rows, int64_t columns)
      : threads_(threads),
        rows_(rows),
        columns_(columns),
        width_(padded(kernel, columns)),
        data_(threads * rows * width_, Buffer::kZeros) {}

  float *of(int thread) const { return rows_ ? data_.get() + thread * rows_ * width_ : nullptr; }

  // Element (i, j) of the total goes to out[i*stride_i + j*stride_j].
  void add_up(float *out, int64_t stride_i, int64_t stride_j) const {
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t j = 0; j < columns_; ++j) {
        float sum = 0;
        for (int t = 0; t < threads_; ++t) sum += of(t)[i * width_ + j];
        out[i * stride_i + j * stride_j] = sum;
      }
  }

 private:
  int threads_;
  int64_t rows_, columns_, width_;
  Buffer data_;
};

void run_backward(const qornn_problem &p, const qornn_gradients &g) {
  const Kernel &kernel = *current().load();
  const int threads = thread_count(p, kernel);
  const Recurrent W(p, kernel, p.n_h, 1);  // element (k, j) is W[k][j]
  Buffer V(g.dy ? p.n_o * padded(kernel, p.n_h) : 0, Buffer::kAny);
  if (g.dy) kernel.pack(V.get(), p.V, p.n_o, p.n_h, p.n_h, 1);
  const Packed packed{W.dense(), nullptr, V.get(), W.signs(), nullptr};
  const bool wide = !p.codes && p.n_i > qornn::kFewChannels;
  const int64_t rows_W = !g.dW ? 0 : p.u ? 1 : p.n_h;
  const PartialSums dW(kernel, threads, rows_W, p.n_h), dU(kernel, threads, wide ? 0 : p.n_i, p.n_h),
      dU_wide(kernel, threads, wide ? p.n_h : 0, p.n_i), db(kernel, threads, g.db ? 1 : 0, p.n_h),
      dV(kernel, threads, g.dy ? p.n_o : 0, p.n_h);
  const int64_t scratch_size = kernel.scratch_floats(p, (p.B + threads - 1) / threads);
  Buffer scratch(threads * scratch_size, Buffer::kAny);
  share(p.B, threads, [&](int i, int64_t first, int64_t last) {
    const Sums sums{dW.of(i), dU.of(i), dU_wide.of(i), db.of(i), dV.of(i), scratch.get() + i * scratch_size};
    kernel.backward(p, g, packed, sums, first, last);
  });
  if (g.dW) dW.add_up(g.dW, p.n_h, 1);
  dU.add_up(g.dU, 1, p.n_i);
  dU_wide.add_up(g.dU, p.n_i, 1);
  if (g.db) db.add_up(g.db, p.n_h, 1);
  if (g.dy) dV.add_up(g.dV, p.n_h, 1);
}

}  // namespace

const Kernel &qornn::chosen_kernel() { return *current().load(); }

std::atomic<qornn_parallel> &qornn::lent_threads() {
  static std::atomic<qornn_parallel> parallel{nullptr};
  return parallel;
}

extern "C" int qornn_forward(const qornn_problem *p) {
  return without_exceptions([&] { run_forward(*p); });
}

extern "C" int qornn_backward(const qornn_problem *p, const qornn_gradients *g) {
  return without_exceptions([&] { run_backward(*p, *g); });
}

extern "C" void qornn_use_threads(qornn_parallel parallel) { qornn::lent_threads().store(parallel); }

extern "C" const char *qornn_isa(void) { return current().load()->name; }

extern "C" int qornn_use_isa(const char *name) {
  for (const Kernel *kernel : kernels())
    if (!std::strcmp(kernel->name, name)) {
      current().store(kernel);
      return 0;
    }
  return -1;
}
