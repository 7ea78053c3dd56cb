// Kernels with one fault each, named after it; check.py must find them. Those named `right` have none.

// An array that is indexed by numbers known only at run time lies on the stack.
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

// 160 numbers that all wait for the last of 160 loads.
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

// f64 is there to check gradients.
template <class T> __global__ void right_f64(const T* x, T* y, int n, int by) { divide(x, y, n, by); }
template __global__ void right_f64<double>(const double*, double*, int, int);

// Divisions of floating-point numbers, and of integers before the loop.
__global__ void right(const float* x, float* y, long long n, long long by) {
  float sum = 0;
  for (long long i = threadIdx.x / by; i < n; i += blockDim.x) sum += x[i] / x[i + 1];
  y[threadIdx.x] = sum;
}
