#include "ops/pooling/lengths.h"

#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/device/graph.h"

namespace ricci {

void check_lengths(const char* op, const Tensor& lengths_b, int64_t context) {
  if (!lengths_b || lengths_b.device() == Device::cuda || recording_graph()) return;
  const Tensor read = to(lengths_b.detached(), Device::cpu);
  for (int64_t b = 0; b < read.size(); ++b)
    if (const int64_t length = read.data<int64_t>()[b]; length < 0 || length > context)
      fail("{}: length {} at [{}] of lengths_b is outside 0 .. {}", {op, length, b, context});
}

}  // namespace ricci
