// A GPT from layers and ops: eleven lines from token ids to the loss. Model builds the same network from a config. This program trains both
// and compares every bit of their losses and gradients.
#include <ricci/ricci.h>

#include <algorithm>
#include <cstring>

using namespace ricci;

constexpr int64_t kVocabulary = 128, kContext = 64, kWidth = 64, kHeads = 4, kLayers = 2;
constexpr InitialWeights kInitial{.layers = kLayers};  // GPT-2: N(0, 0.02), divided by sqrt(2 layers) for maps into the residual

struct Layer {  // all maps have biases (true)
  LayerNorm ln1{kWidth}, ln2{kWidth};
  Linear qkv{kWidth, 3 * kWidth, true, kInitial.map(kWidth)}, proj{kWidth, kWidth, true, kInitial.into_residual(kWidth)};
  Linear fc{kWidth, 4 * kWidth, true, kInitial.map(kWidth)}, fc_out{4 * kWidth, kWidth, true, kInitial.into_residual(4 * kWidth)};
  template <class V> void visit(V&& v) { v("ln1", ln1, "ln2", ln2, "mixer.qkv", qkv, "mixer.proj", proj, "fc", fc, "fc_out", fc_out); }
};

// x += branch; returns norm(x). One fused op, as in Model: with two ops, the last bits of the gradients can differ.
Tensor add_and_norm(Tensor& x_bcd, const Tensor& branch_bcd, const LayerNorm& norm) {
  const auto [sum_bcd, normed_bcd] = norm(x_bcd, branch_bcd);
  x_bcd = sum_bcd;
  return normed_bcd;
}

struct Gpt {
  Table tok{kVocabulary, kWidth, kInitial.tokens()}, pos{kContext, kWidth, kInitial.positions(kWidth)};
  std::vector<Layer> blocks = std::vector<Layer>(kLayers);
  LayerNorm ln_f{kWidth};
  template <class V> void visit(V&& v) { v("tok", tok, "pos", pos, "blocks", blocks, "ln_f", ln_f); }

  Tensor loss(const Batch& batch) const {
    Tensor x_bcd = embedding(batch.ids_bc, tok.weight, pos.weight), n_bcd = blocks[0].ln1(x_bcd);
    for (size_t i = 0; i < kLayers; ++i) {
      const Layer& layer = blocks[i];
      const auto [q, k, v] = thirds(layer.qkv(n_bcd));
      n_bcd = add_and_norm(x_bcd, layer.proj(attention(q, k, v, Visibility::causal(), {.heads = kHeads})), layer.ln2);
      n_bcd = add_and_norm(x_bcd, layer.fc_out(gelu(layer.fc(n_bcd))), i + 1 < kLayers ? blocks[i + 1].ln1 : ln_f);
    }
    const int64_t rows = batch.ids_bc.size();
    return classifier_loss(reshape(n_bcd, {rows, kWidth}), tok.weight, Tensor(), batch.targets.reshaped({rows}));
  }
};

bool equal_bits(const Tensor& a, const Tensor& b) { return a.bytes() == b.bytes() && !std::memcmp(a.raw(), b.raw(), size_t(a.bytes())); }
bool same(const Parameter* a, const Parameter* b) { return a->path == b->path && equal_bits(a->grad, b->grad); }

int main() {
  ModelConfig config;
  config.vocab = kVocabulary;
  config.ctx = kContext;
  config.d = kWidth;
  config.layers = kLayers;
  config.settings<Sdp>().heads = kHeads;
  Model model(config, 1);  // the seed of the initial weights
  Gpt gpt;
  const std::vector<Parameter*> ours = parameters_of(gpt), theirs = model.parameters();
  for (Parameter* p : ours) draw(*p, 1);  // samples by path and seed
  Optimizer optimizer(ours, {}), other_optimizer(theirs, {});

  const std::string text = "To be, or not to be, that is the question";
  const Shape shape{1, std::ssize(text) - 1};
  const std::vector<int64_t> ids(text.begin(), text.end() - 1), targets(text.begin() + 1, text.end());
  const Batch batch = make_batch(tensor_of(ids, shape), tensor_of(targets, shape));
  bool equal = true;
  for (int step = 0; step <= 20; ++step) {
    Tape tape;
    const Tensor loss = gpt.loss(batch), other_loss = model.loss(batch);
    tape.backward(loss + other_loss);
    equal &= equal_bits(loss, other_loss) && std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(), same);
    if (step % 10 == 0) std::printf("step %d: loss %.3f by hand, %.3f of Model\n", step, item(loss), item(other_loss));
    optimizer.step(3e-3);
    other_optimizer.step(3e-3);
  }
  std::printf("%zu gradients and the loss: %s\n", ours.size(), equal ? "equal in every bit" : "not equal");
  return equal ? 0 : 1;
}
