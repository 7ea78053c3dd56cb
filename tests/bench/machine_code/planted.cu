// Kernels with one fault each, named after it; check.py must find them. Kernels named `right` are correct.

// An array with run-time indices is on the stack.
__global__ void stack(const int* x, int* y, int n) {
  int seen[32];
  for (int i = 0; i < 32; ++i) seen[i] = x[i];
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += seen[x[i] % 32]++;
  y[threadIdx.x] = sum;
}

__global__ void size(float* y) {
  float a = y[threadIdx.x];
#pragma unroll
  for (int i = 0; i < 9000; ++i) asm volatile("add.f32 %0, %0, %0;" : "+f"(a));
  y[threadIdx.x] = a;
}

// 160 numbers wait for the last of 160 loads.
__global__ void __launch_bounds__(256) registers(const float* x, float* y) {
  float a[160], sum = 0;
#pragma unroll
  for (int i = 0; i < 160; ++i) asm volatile("ld.global.f32 %0, [%1];" : "=f"(a[i]) : "l"(x + i * 256 + threadIdx.x) : "memory");
#pragma unroll
  for (int i = 0; i < 160; ++i) sum += a[i] * a[159 - i] + a[(i * 7) % 160];
  y[threadIdx.x] = sum;
}

template <class T, class Int> __device__ void divide(const T* x, T* y, Int n, Int by) {
  T sum = 0;
#pragma unroll 1
  for (Int i = threadIdx.x; i < n; i += blockDim.x) sum += x[n / (i + by)];
  y[threadIdx.x] = sum;
}

__global__ void division_32(const float* x, float* y, int n, int by) { divide(x, y, n, by); }
__global__ void division_64(const float* x, float* y, long long n, long long by) { divide(x, y, n, by); }

// f64 is for gradient checks.
template <class T> __global__ void right_f64(const T* x, T* y, int n, int by) { divide(x, y, n, by); }
template __global__ void right_f64<double>(const double*, double*, int, int);

// Divisions of floating-point numbers, and of integers before the loop.
__global__ void right(const float* x, float* y, long long n, long long by) {
  float sum = 0;
  for (long long i = threadIdx.x / by; i < n; i += blockDim.x) sum += x[i] / x[i + 1];
  y[threadIdx.x] = sum;
}

// y need not begin at a multiple of 16 bytes.
__global__ void split_store(const int4* x, int* y) {
  const int4 v = x[threadIdx.x];
  int* const of_thread = y + 4 * threadIdx.x;
  of_thread[0] = v.x;
  of_thread[1] = v.y;
  of_thread[2] = v.z;
  of_thread[3] = v.w;
}

__device__ void multiply(float (&d)[4], unsigned long long a, unsigned long long b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "l"(a), "l"(b)
               : "memory");
}
__device__ void multiply_registers(float (&d)[4], const unsigned (&a)[4], unsigned long long b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)
               : "memory");
}
__device__ void wait_for_all() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// d changes between two products that add to it.
__global__ void __launch_bounds__(128) one_after_the_other(unsigned long long a, unsigned long long b, float* y) {
  float d[4] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  multiply(d, a, b);
  d[1] *= 2;
  multiply(d, a, b);
  wait_for_all();
  y[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}

__global__ void __launch_bounds__(128) right_wgmma(unsigned long long a, unsigned long long b, float* y) {
  float d[4] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  multiply(d, a, b);
  multiply(d, a + 2, b + 2);
  multiply(d, a + 4, b + 4);
  wait_for_all();
  y[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}

// The loop changes the second register of a, so only its first round reads a as loaded.
__global__ void __launch_bounds__(128) changed_operand(const unsigned* x, unsigned long long b, int n, float* y) {
  float d[4] = {};
  unsigned a[4] = {x[threadIdx.x], x[threadIdx.x + 128], x[threadIdx.x + 256], x[threadIdx.x + 384]};
#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    multiply_registers(d, a, b);
    multiply_registers(d, a, b + 2);
    wait_for_all();
    a[1] += i;
  }
  y[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}

// Like kernels for warpgroups on a GPU without wgmma.
__global__ void WarpgroupKernel() { __trap(); }
