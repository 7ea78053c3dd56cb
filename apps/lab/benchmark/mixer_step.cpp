#include "apps/lab/benchmark/mixer_step.h"

#include "autograd/tape.h"
#include "core/memory/dry_run.h"
#include "core/memory/memory.h"
#include "core/random.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/layers/stack.h"
#include "models/layers/visit.h"
#include "models/mixers/mixers.h"

namespace ricci::apps {
namespace {

Tensor random(const Shape& shape, uint64_t stream, const StepSize& size) {
  const Tensor t(shape);
  if (!is_dry_run()) fill_normal(t.data<float>(), t.size(), 0.0f, 1.0f, Philox{1, stream});
  return to(convert(t, size.dtype), size.device);
}

// Mixers are causal, as in a language model.
MixerShape shape_of(const StepSize& size, int64_t layers) {
  MixerShape shape;
  shape.d = size.width;
  shape.ctx = size.positions;
  shape.init = {size.preset, layers};
  return shape;
}

template <class M> typename M::Config config_of(const StepSize& size) {
  typename M::Config config;
  if constexpr (requires { config.heads; }) config.heads = size.heads;
  return config;
}

template <class M> Stack<M> stack_of(const StepSize& size) {
  BlockConfig block;
  const bool post = size.preset == Preset::msa;
  block.norm = post ? Norm::post : Norm::pre;
  block.activation = post ? Activation::relu : Activation::gelu;
  block.ff = size.feed_forward ? size.feed_forward : size.width;
  const StackConfig<M> config{shape_of(size, size.layers), size.layers, PositionKind::none, block, config_of<M>(size)};
  return Stack<M>(config);
}

// The parameters of a stack without positions: those of its blocks, and of the norm behind pre-norm blocks.
template <Mixer M> struct Blocks {
  Stack<M>& stack;
  template <class V> void visit(V&& v) { v("blocks", stack.blocks, "ln", stack.ln); }
};

}  // namespace

struct MixerStep::Any {
  StepSize size;
  Tensor x_bcd, dy_bcd;
  std::vector<Parameter*> parameters;
  std::shared_ptr<void> module;
  std::function<Tensor(const Arg& x_bcd)> forward;

  explicit Any(const StepSize& s)
      : size(s), x_bcd(random({s.sequences, s.positions, s.width}, 1, s)), dy_bcd(random({s.sequences, s.positions, s.width}, 2, s)) {}

  template <class Module> void draw_weights(Module& drawn) {
    each_parameter(drawn, [&](const std::string& path, Parameter& p) {
      p.path = path;
      if (!is_dry_run()) draw(p, 1);
      p.value = to(convert(p.value, size.dtype), size.device);
      parameters.push_back(&p);
    });
  }

  template <Mixer M> void build() {
    const typename M::Config config = config_of<M>(size);
    if constexpr (requires { check(config, MixerShape()); }) check(config, shape_of(size, size.layers));
    if (size.alone) {
      const auto mixer = std::make_shared<M>(shape_of(size, 1), config_of<M>(size));
      draw_weights(*mixer);
      module = mixer;
      forward = [mixer](const Arg& x) { return (*mixer)(x, Tensor()); };
    } else {
      const auto stack = std::make_shared<Stack<M>>(stack_of<M>(size));
      Blocks<M> blocks{*stack};
      draw_weights(blocks);
      module = stack;
      forward = [stack](const Arg& x) { return (*stack)(x, Tensor()); };
    }
  }
};

MixerStep::MixerStep(MixerKind mixer, const StepSize& size) : any_(std::make_unique<Any>(size)) {
  Mixers::call_for(mixer, [&]<class M>() { any_->build<M>(); });
}
MixerStep::~MixerStep() = default;
MixerStep::MixerStep(MixerStep&&) noexcept = default;

const std::vector<Parameter*>& MixerStep::parameters() const { return any_->parameters; }

void MixerStep::operator()() {
  {
    Tape tape;
    const Tensor y_bcd = any_->forward(any_->size.alone ? Arg(tape.watch(any_->x_bcd)) : Arg(any_->x_bcd));
    // A mixer without weights in a stack whose input is given has nothing to differentiate.
    if (tape.has(y_bcd)) tape.backward(y_bcd, any_->dy_bcd);
  }
  for (Parameter* p : any_->parameters) p->grad = {};
  synchronize(any_->size.device);
}

void MixerStep::forward() {
  const NoTape no_tape;
  any_->forward(any_->x_bcd);
  synchronize(any_->size.device);
}

int64_t MixerStep::kept_bytes() {
  const int64_t before = memory_use(any_->size.device).current;
  const Tape tape;
  { const Tensor y_bcd = any_->forward(Arg(any_->x_bcd)); }  // the output is the next layer's
  return memory_use(any_->size.device).current - before;
}

}  // namespace ricci::apps
