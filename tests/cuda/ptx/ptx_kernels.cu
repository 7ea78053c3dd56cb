// The kernels of ptx_kernels.h for the GPU.
#include "tests/cuda/ptx/ptx_kernels.h"

namespace ricci {

using namespace ptx_kernels;

CUDA_KERNEL(Mma);
CUDA_KERNEL(Wgmma<64, false, false>);
CUDA_KERNEL(Wgmma<64, true, true>);
CUDA_KERNEL(Wgmma<128, false, true>);
CUDA_KERNEL(Wgmma<128, true, false>);
CUDA_KERNEL(WgmmaShared<false, false>);
CUDA_KERNEL(WgmmaShared<false, true>);
CUDA_KERNEL(WgmmaShared<true, true>);
CUDA_KERNEL(Ldmatrix<1, false>);
CUDA_KERNEL(Ldmatrix<2, false>);
CUDA_KERNEL(Ldmatrix<4, false>);
CUDA_KERNEL(Ldmatrix<1, true>);
CUDA_KERNEL(Ldmatrix<2, true>);
CUDA_KERNEL(Ldmatrix<4, true>);
CUDA_KERNEL(Pipeline<4>);
CUDA_KERNEL(Pipeline<8>);
CUDA_KERNEL(Pipeline<16>);
CUDA_KERNEL(Rounding);
CUDA_KERNEL(Approximations);
CUDA_KERNEL(Words);
CUDA_KERNEL(Atomics);

}  // namespace ricci
