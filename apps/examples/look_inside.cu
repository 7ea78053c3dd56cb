// Prints the tape of a GPT of one block, the error of a product of wrong shapes, and the error of a kernel with a mistake.
// README.md shows the first two.
#include <ricci/kernels.h>
#include <ricci/ricci.h>

using namespace ricci;

// Adds 128 numbers by a tree reduction. The mistake: the barrier is inside the if, so half of the threads never reach it.
struct TreeSum {
  static constexpr int kThreads = 128;
  float* x;
  __device__ void operator()() const {
    for (unsigned half = kThreads / 2; half > 0; half /= 2)
      if (threadIdx.x < half) {
        x[threadIdx.x] += x[threadIdx.x + half];
        __syncthreads();
      }
  }
};
CUDA_KERNEL(TreeSum);

#ifndef __CUDACC__

template <class F> void print_error(F f) {
  try {
    f();
  } catch (const Error& error) {
    std::printf("\n%s\n", error.what());
  }
}

int main() {
  ModelConfig config;
  config.vocab = 64;
  config.ctx = 8;
  config.d = 16;
  config.layers = 1;
  config.settings<Sdp>().heads = 2;
  const Model model(config, 1);  // the seed of the initial weights
  const Tensor ids_bc = tensor_of(std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8}, {1, 8});
  {
    Tape tape;
    model.loss({ids_bc, ids_bc});
    tape.print(stdout);
  }
  print_error([] { linear(randn({10, 3}, 1), randn({7, 4}, 2), Tensor()); });
  print_error([] {
    const Tensor x = zeros({128}, Dtype::f32, Device::cuda_emulated);
    launch("tree_sum", Device::cuda_emulated, {1, TreeSum::kThreads}, TreeSum{x.data<float>()});
  });
}

#endif
