#include "cuda/gemm.h"

#include "core/error.h"
#include "cuda/device.h"
#include "cuda/gemm_backends.h"

namespace ricci {

void gemm(const Gemm& g) {
  if (g.batch < 0 || g.m < 0 || g.n < 0 || g.k < 0) fail("gemm: negative extent among {} x {} x {} x {}", {g.batch, g.m, g.n, g.k});
  if (g.dtype == Dtype::i64) fail("gemm: expected a floating-point dtype, got {}", {name_of(g.dtype)});
  if (g.c_f32 && g.dtype != Dtype::bf16) fail("gemm: c in f32 goes with factors in bf16, got {}", {name_of(g.dtype)});
  require(g.device);
  if (g.batch * g.m * g.n == 0) return;
  if (g.device == Device::cpu) {
    if (g.dtype == Dtype::f64 || g.k == 0 || !gemm_onednn(g)) gemm_blocked(g);
    return;
  }
#ifdef RICCI_HAS_CUDA
  if (g.device == Device::cuda && g.k > 0 && gemm_cublas(g)) return;
#endif
  gemm_tiled(g);
}

}  // namespace ricci
