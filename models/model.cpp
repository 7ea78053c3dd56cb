#include "models/model.h"

#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/families/decoder.h"
#include "models/visit.h"

namespace ricci {
namespace {

template <class Family> class ModelOf final : public AnyModel {
  struct State final : DecodingState {
    typename Family::State value;
  };

 public:
  explicit ModelOf(const ModelConfig& config) : family_(config) {}
  Tensor logits(const Inputs& inputs) const override { return family_.logits(inputs); }
  Tensor loss(const Inputs& inputs) const override { return family_.loss(inputs); }
  std::unique_ptr<DecodingState> init_state(int64_t batch) const override {
    auto state = std::make_unique<State>();
    state->value = family_.init_state(batch);
    return state;
  }
  Tensor advance(const Tensor& ids_bc, DecodingState& state) const override { return family_.advance(ids_bc, static_cast<State&>(state).value); }
  void each_parameter(const std::function<void(const std::string&, Parameter&)>& f) override { ricci::each_parameter(family_, "", f); }
  void init(uint64_t seed) override { family_.init(seed); }
  void place(Dtype dtype, Device device) override { family_.place(dtype, device); }
  void recompute_blocks(bool on) override { family_.recompute = on; }

 private:
  Family family_;
};

std::unique_ptr<AnyModel> build(const ModelConfig& config) {
  check(config);
  if (config.family != "decoder") fail("model.family: '{}' is not built yet; there is decoder", {config.family});
  if (config.mixer != "sdp") fail("model.mixer: '{}' is not built yet; there is sdp", {config.mixer});
  return std::make_unique<ModelOf<Decoder>>(config);
}

}  // namespace

// Built in the body: when there is no memory for it, each_held is asked, and finds no model rather than no pointer.
Model::Model(const ModelConfig& config) : config_(config) { model_ = build(config); }

void Model::place(Dtype dtype, Device device) {
  model_->place(dtype, device);
  each_parameter([](const std::string&, Parameter& p) { p.master = {}; });
}

void Model::place_for_training(Dtype dtype, Device device) {
  std::vector<Tensor> masters;
  if (dtype == Dtype::bf16)
    each_parameter([&](const std::string&, Parameter& p) { masters.push_back(to(convert(p.unrounded(), Dtype::f32), device)); });
  place(dtype, device);
  auto master = masters.begin();
  if (dtype == Dtype::bf16)
    each_parameter([&](const std::string&, Parameter& p) { p.master = *master++; });
}

Tensor Model::step(const Tensor& ids_b, DecodingState& state) const {
  const Tensor logits_bcv = advance(ids_b.reshaped({ids_b.size(), 1}), state);
  return logits_bcv.reshaped({ids_b.size(), logits_bcv.shape()[-1]});
}

std::vector<Parameter*> Model::parameters() {
  std::vector<Parameter*> all;
  each_parameter([&](const std::string&, Parameter& p) { all.push_back(&p); });
  return all;
}

void Model::each_held(const Visit& visit) const {
  if (!model_) return;  // moved from
  model_->each_parameter([&](const std::string&, Parameter& p) {
    visit(p.value, HeldFor::parameters), visit(p.grad, HeldFor::gradients), visit(p.master, HeldFor::optimizer_state);
  });
}

int64_t Model::parameter_count() {
  int64_t n = 0;
  each_parameter([&](const std::string&, Parameter& p) { n += p.value.size(); });
  return n;
}

void load_parameters(Model& model, const TensorSource& load) {
  model.each_parameter([&](const std::string& path, Parameter& p) { p.value = load(path, p.value.shape()); });
}

}  // namespace ricci
