// Work shared out among threads, torch's or our own.
#ifndef QORNN_SHARE_H
#define QORNN_SHARE_H

#include <atomic>
#include <cstdint>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "recurrence.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace qornn {

// Vanishing gradients turn into denormals, which cost a hundred times a normal number.
class FlushDenormals {
 public:
#if defined(__x86_64__) || defined(_M_X64)
  FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
  ~FlushDenormals() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#elif defined(__aarch64__)
  FlushDenormals() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(before_));
    __asm__ volatile("msr fpcr, %0" ::"r"(before_ | (1ull << 24)));
  }
  ~FlushDenormals() { __asm__ volatile("msr fpcr, %0" ::"r"(before_)); }

 private:
  uint64_t before_;
#endif
};

std::atomic<qornn_parallel> &lent_threads();  // null: none are lent

// Runs body(number, first, last) on every share of the B sequences. Whoever is free takes the next share, so that all
// are done however many threads come; the result of a share does not depend on who did it.
template <typename Body>
void share(int64_t B, int threads, Body body) {
  std::atomic<int> next{0};
  auto work = [&] {
    FlushDenormals flush;
    for (int i; (i = next++) < threads;) body(i, B * i / threads, B * (i + 1) / threads);
  };
  const qornn_parallel parallel = lent_threads().load();
  if (threads > 1 && parallel)
    return parallel([](void *data) { (*static_cast<decltype(work) *>(data))(); }, &work, static_cast<unsigned>(threads),
                    0);
  std::vector<std::thread> helpers;
  try {
    for (int i = 1; i < threads; ++i) helpers.emplace_back(work);
  } catch (const std::system_error &) {  // no more threads to be had: those there do all shares
  }
  work();
  for (std::thread &helper : helpers) helper.join();
}

template <typename Body>
int without_exceptions(Body body) {
  try {
    body();
    return 0;
  } catch (const std::bad_alloc &) {
    return -1;
  }
}

}  // namespace qornn
#endif
