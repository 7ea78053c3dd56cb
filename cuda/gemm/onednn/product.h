// A product of one shape by oneDNN, on the thread that calls. Primitives are kept: making one takes as long as a product of ten million
// terms.
#pragma once
#include "core/cpu/worker_thread.h"
#include "cuda/gemm/gemm.h"

namespace ricci::onednn {

// Keys of keep_in_dry_run (core/memory/dry_run.h) for buffers that every thread keeps: sums of f32 (onednn.cpp), and the parts of a product
// by tiles (pieces.cpp). They differ in length from the library's own key, which is empty, and from a product's, which has 17 numbers.
constexpr int64_t kSumsKey = 1, kTilesKey = 2;

// Makes the library believe, on this thread, that there is one thread, and keeps signals from its products.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  SignalsHeld held_;
  int before_;
};

// Made now, where this thread has not made it before. Returns false if the library has no such product, or only its reference loops.
bool can_multiply(const Gemm& g);

// By the library, or by gemm_blocked where it cannot.
void multiply(const Gemm& g);

}  // namespace ricci::onednn
