#include "models/model.h"

#include <optional>
#include <variant>

#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/inspection/masks.h"
#include "models/inspection/observation.h"
#include "models/inspection/representations.h"
#include "models/visit.h"

namespace ricci {
namespace {

// Decoders and classifiers around every mixer, and the families of several scales, whose attention is their own.
template <class List> struct FamiliesOf;
template <Mixer... M> struct FamiliesOf<MixerList<M...>> {
  using Any = std::variant<Decoder<M>..., Classifier<M>..., LanguageModel<TopDown>, LanguageModel<BottomUp>, Decoder<Retina>, Coarse>;
};

template <class F> struct StateOf final : DecodingState {
  explicit StateOf(typename F::State s) : value(std::move(s)) {}
  typename F::State value;
};

template <class F> typename F::State& state_of(const F&, DecodingState& state) {
  auto* const own = dynamic_cast<StateOf<F>*>(&state);
  if (!own) fail("model: the decoding state is that of a model of another kind");
  return own->value;
}

StacksConfig stacks_of(const ModelConfig& c) { return {place_of(c), c.embedding.positions, c.block, c.of<Sdp>()}; }

template <Mixer M> StackConfig<M> stack_of(const ModelConfig& c) {
  return {place_of(c), c.layers, c.embedding.positions, c.block, c.of<M>()};
}

template <Mixer M> std::vector<Mask> masks_of(const M& mixer, int64_t tokens) {
  if constexpr (requires { mixer.attention.masks("attention", tokens); }) {
    return mixer.attention.masks("attention", tokens);
  } else if constexpr (requires { mixer.attending; }) {
    Mask mask = attention_mask(mixer.attending, 1, tokens);
    if constexpr (requires { mixer.heads; }) mask.heads = mixer.heads;  // quad_full attends once for every head
    return {mask};
  } else {
    fail("masks: the {} mixer has no attention, and so no mask", {M::kName});
  }
}

// look(family) of a decoder or a classifier around a mixer.
template <class Any, class Look> auto with_stack(const Any& family, const ModelConfig& config, const Look& look) {
  return family([&](const auto& f) -> std::invoke_result_t<const Look&, const Decoder<Sdp>&> {
    if constexpr (requires(const Inputs& inputs) { f.embedded(inputs); })
      if (!has_scales(config.family)) return look(f);
    fail("inspection: model.family: {}, but only decoders and classifiers can be looked into", {name_of(config.family)});
  });
}

}  // namespace

struct Model::AnyFamily {
  FamiliesOf<Mixers>::Any value;

  template <class F> decltype(auto) operator()(F f) { return std::visit(f, value); }
  template <class F> decltype(auto) operator()(F f) const { return std::visit(f, value); }

  template <Mixer M> static std::unique_ptr<AnyFamily> build(const ModelConfig& c) {
    if (c.family == Family::classifier) return of(Classifier<M>(c.vocab, c.embedding, c.classifier, stack_of<M>(c)));
    return of(Decoder<M>(c.vocab, c.embedding, c.output, stack_of<M>(c)));
  }
  static std::unique_ptr<AnyFamily> build_scales(const ModelConfig& c) {
    const MixerShape place = place_of(c);
    switch (c.family) {
      case Family::topdown:
        return of(LanguageModel<TopDown>(
            c.vocab, c.embedding, c.output, place, TopDown(stacks_of(c), c.scales, c.stack_layers, c.down, c.topdown)));
      case Family::bottomup:
        return of(LanguageModel<BottomUp>(
            c.vocab, c.embedding, c.output, place, BottomUp(stacks_of(c), c.scales, c.stack_layers, c.down, c.bottomup)));
      case Family::retina: {
        const Retina::Config retina{c.scales, c.down, c.retina, c.of<Sdp>()};
        return of(Decoder<Retina>(c.vocab, c.embedding, c.output, {place, c.layers, c.embedding.positions, c.block, retina}));
      }
      case Family::coarse: return of(Coarse(c.vocab, c.embedding, c.output, stacks_of(c), c.layers, c.down, c.coarse));
      default: fail("model.family: number {}", {static_cast<int>(c.family)});
    }
  }
  template <class F> static std::unique_ptr<AnyFamily> of(F family) { return std::unique_ptr<AnyFamily>(new AnyFamily{std::move(family)}); }
};

// The family is built in the body: when there is no memory for it, each_held is asked, and finds no family rather than no pointer.
Model::Model(const ModelConfig& config) : config_(config) {
  check(config);
  if (has_scales(config.family)) family_ = AnyFamily::build_scales(config);
  else Mixers::at(static_cast<size_t>(config.mixer), [&]<class M>() { family_ = AnyFamily::build<M>(config); });
  each_parameter([](const std::string& path, Parameter& p) { p.path = path; });
}

Model::Model(Model&&) noexcept = default;
Model::~Model() = default;

Tensor Model::logits(const Inputs& inputs) const {
  return (*family_)([&](const auto& f) { return f.logits(inputs); });
}

Tensor Model::loss(const Inputs& inputs) const {
  return (*family_)([&](const auto& f) { return f.loss(inputs); });
}

Tensor Model::text_loss(const Inputs& inputs) const {
  return (*family_)([&](const auto& f) {
    if constexpr (requires { f.text_loss(inputs); }) return f.text_loss(inputs);
    else return f.loss(inputs);
  });
}

int64_t Model::counted(const Inputs& inputs, int64_t targets) const {
  return (*family_)([&](const auto& f) {
    if constexpr (requires { f.counted(inputs, targets); }) return f.counted(inputs, targets);
    else return targets;
  });
}

std::unique_ptr<DecodingState> Model::init_state(int64_t batch) const {
  return (*family_)(
      [&]<class F>(const F& f) -> std::unique_ptr<DecodingState> { return std::make_unique<StateOf<F>>(f.init_state(batch)); });
}

Tensor Model::advance(const Tensor& ids_bc, DecodingState& state) const {
  return (*family_)([&](const auto& f) { return f.advance(ids_bc, state_of(f, state)); });
}

Tensor Model::advance_all(const Tensor& ids_bc, DecodingState& state) const {
  return (*family_)([&](const auto& f) { return f.advance_all(ids_bc, state_of(f, state)); });
}

std::vector<Observation> Model::observe(const Inputs& inputs) const {
  return with_stack(*family_, config_, [&](const auto& f) { return ricci::observe(f.stack, f.embedded(inputs), inputs.lengths_b); });
}

std::vector<Forms> Model::forms() const {
  return with_stack(*family_, config_, [&](const auto& f) {
    std::vector<Forms> all;
    for (const auto& block : f.stack.blocks) all.push_back(forms_of(block.mixer));
    return all;
  });
}

Tensor Model::token_distances(int64_t block, const Tensor& ids_t) const {
  return with_stack(*family_, config_, [&](const auto& f) {
    return ricci::token_distances(f.stack.blocks.at(static_cast<size_t>(block)), f.tok, f.embedding_config, ids_t);
  });
}

std::vector<Representation> Model::representations(const Inputs& inputs) const {
  return (*family_)([&](const auto& f) -> std::vector<Representation> {
    if constexpr (requires { f.representations(inputs); }) return f.representations(inputs);
    else return {{1, f.stack(f.embedded(inputs), inputs.lengths_b)}};
  });
}

std::vector<Mask> Model::masks(int64_t tokens) const {
  return (*family_)([&](const auto& f) -> std::vector<Mask> {
    if constexpr (requires { f.masks(tokens); }) return f.masks(tokens);
    else return masks_of(f.stack.blocks[0].mixer, tokens);
  });
}

void Model::init(uint64_t seed) {
  each_parameter([&](const std::string&, Parameter& p) { draw(p, seed); });
}

void Model::load(const Source& source) {
  each_parameter([&](const std::string& path, Parameter& p) {
    const Tensor loaded = source(path, p.value.shape());
    const auto fitting = [&](const Tensor& like) { return to(convert(loaded, like.dtype()), like.device()); };
    if (p.master) p.master = fitting(p.master);
    p.value = placed_ ? fitting(p.value) : loaded;
  });
}

void Model::place(Dtype dtype, Device device) {
  placed_ = true;
  const auto move = [&](auto& leaf) { leaf.value = to(convert(leaf.value, dtype), device); };
  (*family_)([&](auto& f) {
    each<Parameter>(f, "", [&](const std::string&, Parameter& p) { move(p), p.master = {}; });
    each<Constant>(f, "", [&](const std::string&, Constant& c) { move(c); });
  });
}

void Model::place_for_training(Dtype dtype, Device device) {
  std::vector<Tensor> masters;
  if (dtype == Dtype::bf16)
    each_parameter([&](const std::string&, Parameter& p) { masters.push_back(to(convert(p.unrounded(), Dtype::f32), device)); });
  place(dtype, device);
  auto master = masters.begin();
  if (dtype == Dtype::bf16) each_parameter([&](const std::string&, Parameter& p) { p.master = *master++; });
}

void Model::recompute_blocks(bool on) {
  (*family_)([&](auto& f) { f.recompute_blocks(on); });
}

void Model::each_parameter(const std::function<void(const std::string&, Parameter&)>& f) {
  (*family_)([&](auto& family) { ricci::each_parameter(family, f); });
}

std::vector<Parameter*> Model::parameters() {
  std::vector<Parameter*> all;
  each_parameter([&](const std::string&, Parameter& p) { all.push_back(&p); });
  return all;
}

void Model::each_held(const Visit& visit) const {
  if (!family_) return;  // moved from
  (*family_)([&](auto& family) {
    ricci::each_parameter(family, [&](const std::string&, const Parameter& p) {
      visit(p.value, HeldFor::parameters), visit(p.grad, HeldFor::gradients), visit(p.master, HeldFor::optimizer_state);
    });
  });
}

std::vector<Parameter*> Model::trained_parameters() {
  std::vector<Parameter*> all;
  each_parameter([&](const std::string&, Parameter& p) {
    if (!p.frozen) all.push_back(&p);
  });
  return all;
}

int64_t Model::parameter_count() {
  int64_t n = 0;
  each_parameter([&](const std::string&, Parameter& p) { n += p.value.size(); });
  return n;
}

}  // namespace ricci
