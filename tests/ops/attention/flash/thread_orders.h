// Attention in bf16 on the emulator, whose threads run in one order or another.
#pragma once
#include <vector>

#include "tests/cuda/emulator/emulator_fixture.h"
#include "tests/ops/attention/cases.h"

namespace ricci {

// The results and the gradients of each case have the same bits in every order of threads.
inline void check_thread_orders(const std::vector<Case>& cases) {
  using Order = emu::Options::Order;
  for (const Case& of : cases) {
    CAPTURE(of.text());
    const ForwardAndBackward expected = run(attention, of, Dtype::bf16, Device::cuda_emulated);
    for (Order order : {Order::reverse, Order::random}) {
      WithOptions options;
      options->order = order;
      CHECK(same_bits(run(attention, of, Dtype::bf16, Device::cuda_emulated), expected));
    }
  }
}

}  // namespace ricci
