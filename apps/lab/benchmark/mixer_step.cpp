#include "apps/lab/benchmark/mixer_step.h"

#include <memory>
#include <type_traits>

#include "autograd/tape.h"
#include "core/memory/dry_run.h"
#include "core/memory/memory.h"
#include "core/random.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/layers/stack.h"
#include "models/layers/visit.h"

namespace ricci::apps {
namespace {

Tensor random(uint64_t stream, const StepSize& size) {
  const Tensor t({size.sequences, size.positions, size.width});
  if (!is_dry_run()) fill_normal(t.data<float>(), t.size(), 0.0f, 1.0f, Philox{1, stream});
  return to(convert(t, size.dtype), size.device);
}

}  // namespace

MixerStep::MixerStep(MixerKind mixer, const StepSize& size) : size_(size), x_bcd_(random(1, size)), dy_bcd_(random(2, size)) {
  const auto use = [&](const auto& module) {
    parameters_ = parameters_of(*module);
    for (Parameter* p : parameters_) {
      if (!is_dry_run()) draw(*p, 1);
      p->value = to(convert(p->value, size.dtype), size.device);
    }
    forward_ = [module](const Arg& x) { return (*module)(x, Tensor()); };
  };
  Mixers::call_for(mixer, [&]<class M>() {
    typename M::Config config;
    if constexpr (requires { config.heads; }) config.heads = size.heads;
    MixerShape shape;  // causal, as in a language model
    shape.d = size.width;
    shape.ctx = size.positions;
    shape.init = {size.preset, size.alone ? 1 : size.layers};
    if constexpr (requires { check(config, shape); }) check(config, shape);
    else static_assert(std::is_same_v<typename M::Config, NoKeys>, "a mixer with keys has a check of them");
    const bool post = size.preset == Preset::msa;
    BlockConfig block;
    block.norm = post ? Norm::post : Norm::pre;
    block.activation = post ? Activation::relu : Activation::gelu;
    block.ff = size.feed_forward.value_or(size.width);
    const StackConfig<M> stack{shape, size.layers, PositionKind::none, block, config};
    if (size.alone) use(std::make_shared<M>(shape, config));
    else use(std::make_shared<Stack<M>>(stack));
  });
}

void MixerStep::operator()() {
  {
    Tape tape;
    const Tensor y_bcd = forward_(size_.alone ? Arg(tape.watch(x_bcd_)) : Arg(x_bcd_));
    // A mixer without weights in a stack whose input is given has nothing to differentiate.
    if (tape.has(y_bcd)) tape.backward(y_bcd, dy_bcd_);
  }
  for (Parameter* p : parameters_) p->grad = {};
  synchronize(size_.device);
}

void MixerStep::forward() {
  const NoTape no_tape;
  forward_(x_bcd_);
  synchronize(size_.device);
}

int64_t MixerStep::kept_bytes() {
  const int64_t before = memory_use(size_.device).current;
  const Tape tape;
  { const Tensor y_bcd = forward_(Arg(x_bcd_)); }  // the output is the next layer's
  return memory_use(size_.device).current - before;
}

}  // namespace ricci::apps
