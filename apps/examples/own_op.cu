// Your own op: unit_rows divides each row of x by its length, in f32 and f64. <a, b> is the sum of the elementwise products:
//   y_rc = x_rc / |x_r|,   dx_rc = (dy_rc - y_rc <dy_r, y_r>) / |x_r|
//   bytes   for N numbers in f32, 8 N forward and 12 N backward. Each kernel reads its rows twice, the second time from the cache
// The C++ compiler compiles this file, with its kernels, for the emulator, so they can be tested without a GPU. If nvcc is available,
// it compiles the file again, only for the kernels.
#include <ricci/kernels.h>
#include <ricci/ricci.h>

using namespace ricci;

// ---- The GPU's kernels: one block of threads per row. Each thread sums some of the products; block_reduce sums those sums over the block.
template <class T> struct UnitRow {
  static constexpr int kThreads = 128;
  int64_t width;
  const T* x_rc;
  T *y_rc, *length_r;

  __device__ void operator()() const {
    const T* const x_c = x_rc + blockIdx.x * width;
    T* const y_c = y_rc + blockIdx.x * width;
    T squares = 0;
    for (int64_t c = threadIdx.x; c < width; c += kThreads) squares += x_c[c] * x_c[c];
    const T length = math::sqrt(block_reduce(squares, Sum{}, T(0)));
    for (int64_t c = threadIdx.x; c < width; c += kThreads) y_c[c] = x_c[c] / length;
    if (threadIdx.x == 0) length_r[blockIdx.x] = length;
  }
};

template <class T> struct UnitRowBackward {
  static constexpr int kThreads = 128;
  int64_t width;
  const T *dy_rc, *y_rc, *length_r;
  T* dx_rc;

  __device__ void operator()() const {
    const int64_t first = blockIdx.x * width;
    T along = 0;
    for (int64_t c = threadIdx.x; c < width; c += kThreads) along += dy_rc[first + c] * y_rc[first + c];
    along = block_reduce(along, Sum{}, T(0));
    for (int64_t c = threadIdx.x; c < width; c += kThreads)
      dx_rc[first + c] = (dy_rc[first + c] - y_rc[first + c] * along) / length_r[blockIdx.x];
  }
};

CUDA_KERNEL(UnitRow<float>);
CUDA_KERNEL(UnitRow<double>);
CUDA_KERNEL(UnitRowBackward<float>);
CUDA_KERNEL(UnitRowBackward<double>);

// ---- Code that nvcc does not read: the CPU code, the op, and the check of its gradient.
#ifndef __CUDACC__

template <class T> void on_cpu(const UnitRow<T>& row, int64_t r) {
  const T* const x_c = row.x_rc + r * row.width;
  T squares = 0;
  for (int64_t c = 0; c < row.width; ++c) squares += x_c[c] * x_c[c];
  row.length_r[r] = math::sqrt(squares);
  for (int64_t c = 0; c < row.width; ++c) row.y_rc[r * row.width + c] = x_c[c] / row.length_r[r];
}

template <class T> void on_cpu(const UnitRowBackward<T>& row, int64_t r) {
  const int64_t first = r * row.width;
  T along = 0;
  for (int64_t c = 0; c < row.width; ++c) along += row.dy_rc[first + c] * row.y_rc[first + c];
  for (int64_t c = 0; c < row.width; ++c) row.dx_rc[first + c] = (row.dy_rc[first + c] - row.y_rc[first + c] * along) / row.length_r[r];
}

// On the CPU, the threads share chunks of 16 rows; on a GPU, a kernel has one block per row.
template <class Kernel> void run(const char* name, Device device, int64_t rows, const Kernel& kernel) {
  if (device != Device::cpu) return launch(name, device, {rows, Kernel::kThreads}, kernel);
  parallel_for(rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) on_cpu(kernel, r);
  });
}

// Calls f(T{}) with the type of the elements.
template <class F> void with_type(const Tensor& t, F f) {
  if (t.dtype() == Dtype::f32) return f(float{});
  if (t.dtype() == Dtype::f64) return f(double{});
  fail("unit_rows: the dtype is {}, expected f32 or f64", {name_of(t.dtype())});
}

Tensor unit_rows(const Arg& x_rc) {
  const Dims n = DIMS(x_rc);
  const Tensor y_rc = like(x_rc), length_r = like(x_rc, {n['r']});
  with_type(x_rc, [&]<class T>(T) {
    run("unit_rows", x_rc.device(), n['r'], UnitRow<T>{n['c'], x_rc.data<T>(), y_rc.data<T>(), length_r.data<T>()});
  });
  return record(
      "unit_rows", {x_rc}, y_rc, keep(y_rc, length_r), [](const Tensor& dy_rc, const Tensor& y_rc, const Tensor& length_r) -> Grads {
        const Dims n = DIMS(y_rc);
        const Tensor dx_rc = like(y_rc);
        with_type(y_rc, [&]<class T>(T) {
          const UnitRowBackward<T> row{n['c'], dy_rc.data<T>(), y_rc.data<T>(), length_r.data<T>(), dx_rc.data<T>()};
          run("unit_rows'", y_rc.device(), n['r'], row);
        });
        return {dx_rc};
      });
}

int main() {
  for (const DeviceCheck& check : check_gradients(unit_rows, randn({5, 131}, 1)))
    std::printf("unit_rows on %s: the gradient differs by %.0e at most\n", name_of(check.device), check.result.worst);
}

#endif
