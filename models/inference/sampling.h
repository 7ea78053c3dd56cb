// Samples the next token from logits, and writes texts token by token with a key/value cache. A random value is a function of the seed, the
// sample and the index, so every text is reproducible.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/fields.h"
#include "models/model.h"

namespace ricci {

// The options are applied in the order of Hugging Face transformers: temperature, top_k, top_p, min_p, each to the tokens that remain after
// the previous one.
struct Sampling {
  double temperature = 1;  // 0 chooses the most probable token
  int64_t top_k = 0;       // only the k most probable tokens, and any tied with the last; 0 keeps all
  double top_p = 1;        // only the most probable tokens that together have at least this probability
  double min_p = 0;        // only tokens that are at least this fraction as probable as the most probable one
  uint64_t seed = 1;
  int64_t vocab = 0;  // only ids below this; 0 allows all. A model's vocabulary can be padded beyond its tokenizer's
  Sampling among(int64_t ids) const {
    Sampling other = *this;
    other.vocab = ids;
    return other;
  }
};

inline void visit_fields(Sampling& c, const Fields& field) {
  field("temperature", c.temperature, "divisor of the logits (0: always choose the most probable token)");
  field("top_k", c.top_k, "sample from the k most probable tokens (0: from all)");
  field("top_p", c.top_p, "sample from the most probable tokens that together have this probability");
  field("min_p", c.min_p, "sample from tokens with at least this fraction of the largest probability");
  field("seed", c.seed, "random seed");
}

// Errors: temperature or top_k is below 0; top_p is outside (0, 1]; min_p is outside [0, 1].
void check(const Sampling& sampling);

// Samples a token from the logits of one position. `index` is the position in the sample's sequence of random values. Error: all logits are
// NaN.
int64_t draw_token(std::span<const double> logits_v, const Sampling& sampling, uint64_t index, uint64_t sample = 0);

// Returns the model's log p(token), without applying temperature, top_k, top_p or min_p.
double log_probability(std::span<const double> logits_v, int64_t token);

// Continues `prompt` by `count` tokens. Each token is passed to `use` immediately, until `use` returns false. When the context is full, its
// later half is read again and generation continues. (Dropping one token at a time would need a full forward pass per token.) `context` is
// the largest number of tokens that a sampled token depends on; 0 means the model's context. Nothing is recorded, and dropout is off.
// Errors: the prompt is empty; the context is below 0 or longer than the model's.
void generate(const Model& model, std::span<const int64_t> prompt, int64_t count, const Sampling& sampling, Device device,
    const std::function<bool(int64_t token)>& use, int64_t context = 0);

// Receives a sampled token and the logits of its position. Returns false if the text ends here.
using UseOfToken = std::function<bool(int64_t sample, int64_t token, std::span<const double> logits_v)>;

// One or more texts with a common prompt, continued in turns as in a chat: append ids to all of them, then sample for each. The key/value
// cache is kept between the turns.
class Continuation {
 public:
  // Each sample has its own random values; generate() computes sample 0. Error: samples is outside 1 .. 65,536.
  Continuation(const Model& model, int64_t samples, const Sampling& sampling, Device device, int64_t context = 0);
  ~Continuation();

  // Appends the ids to every text. The model reads them in the next draw().
  void append(std::span<const int64_t> ids);
  // Samples ids for every text and appends them: `count` ids, or fewer once `use` has returned false for all texts. Error: the texts are
  // empty.
  void draw(int64_t count, const UseOfToken& use);

 private:
  const Model& model_;
  Sampling sampling_;
  Device device_;
  int64_t context_;
  std::vector<std::vector<int64_t>> texts_s_;  // all of the same length
  std::unique_ptr<DecodingState> state_;
  int64_t read_ = 0;    // positions in the state
  int64_t unread_ = 0;  // number of last ids of every text that are not yet in the state
  int64_t drawn_ = 0;   // number of tokens sampled so far: the index of the next token
};

}  // namespace ricci
