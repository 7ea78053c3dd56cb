// A virtual interface to the families, plain structs of unrelated types.
#include "models/model.h"

#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/inspection/layers.h"
#include "models/layers/visit.h"

namespace ricci {

struct Model::Any {
  using EachParameter = std::function<void(const std::string& path, Parameter&)>;
  virtual ~Any() = default;
  virtual Tensor logits(const Batch& batch) const = 0;
  virtual Tensor loss(const Batch& batch) const = 0;
  virtual Tensor text_loss(const Batch& batch) const = 0;
  virtual int64_t counted(const Batch& batch) const = 0;
  virtual std::unique_ptr<DecodingState> init_state(int64_t batch) const = 0;
  virtual Tensor advance(const Tensor& ids_bc, DecodingState& state) const = 0;
  virtual std::vector<MixingLayer> layers() = 0;
  virtual Tensor hidden(const Batch& batch) const = 0;
  virtual Tensor token_embeddings(const Tensor& ids_bc) const = 0;
  virtual void recompute_blocks(bool on) = 0;
  virtual void each_parameter(const EachParameter& f) = 0;
  virtual void each_constant(const std::function<void(Constant&)>& f) = 0;
};

// The model of one family.
template <class Made> struct Model::Known final : Any {
  Made model;
  explicit Known(Made made) : model(std::move(made)) {}

  static typename Made::State& state_of(DecodingState& decoding) {
    auto* const known = std::any_cast<typename Made::State>(&decoding.state);
    if (!known) fail("model: the decoding state belongs to a different family or mixer");
    return *known;
  }

  Tensor logits(const Batch& batch) const override { return model.logits(batch); }
  Tensor loss(const Batch& batch) const override { return model.loss(batch); }
  Tensor text_loss(const Batch& batch) const override {
    if constexpr (requires { model.text_loss(batch); }) return model.text_loss(batch);
    else return model.loss(batch);
  }
  int64_t counted(const Batch& batch) const override {
    if constexpr (requires { model.counted(batch); }) return model.counted(batch);
    else return batch.scored;
  }
  std::unique_ptr<DecodingState> init_state(int64_t batch) const override {
    return std::make_unique<DecodingState>(model.init_state(batch));
  }
  Tensor advance(const Tensor& ids_bc, DecodingState& state) const override { return model.advance(ids_bc, state_of(state)); }
  std::vector<MixingLayer> layers() override { return layers_of(model); }
  Tensor hidden(const Batch& batch) const override { return model.hidden(batch); }
  Tensor token_embeddings(const Tensor& ids_bc) const override { return embed(ids_bc, model.tok, Tensor(), model.embedding_config); }
  void recompute_blocks(bool on) override {
    model.each_attention([&](int64_t, auto&& layer) {
      if constexpr (requires { layer.recomputes_blocks; }) layer.recomputes_blocks = on;
    });
  }
  void each_parameter(const EachParameter& f) override { each<Parameter>(model, "", f); }
  void each_constant(const std::function<void(Constant&)>& f) override {
    each<Constant>(model, "", [&](const std::string&, Constant& c) { f(c); });
  }
};

// any_ is set only in the body: if memory runs out while the model is built, each_tensor is called and must find a null pointer.
Model::Model(const ModelConfig& config) : config_(config) {
  check(config);
  Families::call_for(config.family, [&]<class F>() {
    F::build(config, config.settings<F>(), [&]<class Made>(Made made) { any_ = std::make_unique<Known<Made>>(std::move(made)); });
  });
  each_parameter([](const std::string& path, Parameter& p) { p.path = path; });
}

Model::Model(Model&&) noexcept = default;
Model::~Model() = default;

Tensor Model::logits(const Batch& batch) const { return any_->logits(batch); }
Tensor Model::loss(const Batch& batch) const { return any_->loss(batch); }
Tensor Model::text_loss(const Batch& batch) const { return any_->text_loss(batch); }
int64_t Model::counted(const Batch& batch) const { return any_->counted(batch); }

std::unique_ptr<DecodingState> Model::init_state(int64_t batch) const { return any_->init_state(batch); }
Tensor Model::advance(const Tensor& ids_bc, DecodingState& state) const { return any_->advance(ids_bc, state); }

std::vector<MixingLayer> Model::layers() const { return any_->layers(); }
Tensor Model::hidden(const Batch& batch) const { return any_->hidden(batch); }
Tensor Model::token_embeddings(const Tensor& ids_bc) const { return any_->token_embeddings(ids_bc); }

void Model::init(uint64_t seed) {
  each_parameter([&](const std::string&, Parameter& p) { draw(p, seed); });
}

void Model::load(const Source& source) {
  each_parameter([&](const std::string& path, Parameter& p) {
    const Tensor loaded = source(path, p.value.shape());
    if (p.master) copy(p.master, convert(loaded, p.master.dtype()));
    if (placed_) copy(p.value, convert(loaded, p.value.dtype()));
    else p.value = loaded;
  });
}

void Model::place(Dtype dtype, Device device) {
  placed_ = true;
  const auto move = [&](auto& leaf) { leaf.value = to(convert(leaf.value, dtype), device); };
  any_->each_parameter([&](const std::string&, Parameter& p) {
    move(p);
    p.master = {};
  });
  any_->each_constant(move);
}

void Model::place_for_training(Dtype dtype, Device device) {
  std::vector<Tensor> masters;
  if (dtype == Dtype::bf16)
    each_parameter([&](const std::string&, Parameter& p) { masters.push_back(to(convert(p.unrounded(), Dtype::f32), device)); });
  place(dtype, device);
  auto master = masters.begin();
  if (dtype == Dtype::bf16) each_parameter([&](const std::string&, Parameter& p) { p.master = *master++; });
}

void Model::recompute_blocks(bool on) { any_->recompute_blocks(on); }
void Model::each_parameter(const std::function<void(const std::string&, Parameter&)>& f) { any_->each_parameter(f); }

std::vector<Parameter*> Model::parameters() {
  std::vector<Parameter*> all;
  each_parameter([&](const std::string&, Parameter& p) { all.push_back(&p); });
  return all;
}

std::vector<Parameter*> Model::trained_parameters() {
  std::vector<Parameter*> all = parameters();
  std::erase_if(all, [](const Parameter* p) { return p->frozen; });
  return all;
}

void Model::each_tensor(const Visit& visit) const {
  if (!any_) return;  // moved from
  any_->each_parameter([&](const std::string&, const Parameter& p) {
    visit(p.value, HeldFor::parameters);
    visit(p.grad, HeldFor::gradients);
    visit(p.master, HeldFor::optimizer_state);
  });
}

int64_t Model::parameter_count() {
  int64_t n = 0;
  each_parameter([&](const std::string&, Parameter& p) { n += p.value.size(); });
  return n;
}

}  // namespace ricci
