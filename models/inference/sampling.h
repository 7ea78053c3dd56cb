// The next token, drawn from logits; and texts, token by token with a key/value cache.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/fields.h"
#include "models/model.h"

namespace ricci {

// The order is the one of transformers: temperature, top_k, top_p, min_p, each among the tokens that the one before left.
struct Sampling {
  double temperature = 1;  // at 0 the most probable token is chosen
  int64_t top_k = 0;       // only the k most probable tokens, and those that tie with the last of them; 0: all
  double top_p = 1;        // only the most probable tokens that together have at least this probability
  double min_p = 0;        // only tokens with at least this share of the probability of the most probable one
  uint64_t seed = 1;
  int64_t pieces = 0;                    // draws only ids below this number, or with 0 all
  Sampling among(int64_t count) const {  // draws only ids below count
    Sampling other = *this;
    other.pieces = count;
    return other;
  }
};

inline void visit_fields(Sampling& c, const Fields& field) {
  field("temperature", c.temperature, "divisor of the logits; 0: always the most probable token");
  field("top_k", c.top_k, "draw from the k most probable tokens; 0: from all");
  field("top_p", c.top_p, "draw from the most probable tokens that together have this probability");
  field("min_p", c.min_p, "draw from tokens with at least this share of the largest probability");
  field("seed", c.seed, "seed of the random draws");
}

// Errors: temperature below 0, top_k below 0, top_p outside (0, 1], min_p outside [0, 1].
void check(const Sampling& sampling);

// One token from the logits of one position. `index` numbers the draws of a sample: the same (seed, sample, index) draws the same.
// Error: logits that are all NaN.
int64_t draw_token(std::span<const double> logits_v, const Sampling& sampling, uint64_t index, uint64_t sample = 0);

// log p(token) at the position of the logits, by the model alone: before temperature, top_k, top_p and min_p.
double log_probability(std::span<const double> logits_v, int64_t token);

// Continues `prompt` by `count` tokens; each is given to `use` as soon as it is drawn, until use returns false. When the
// context is full, its later half is read again and generation goes on from there. `context` is the largest number of tokens
// from which the next one is drawn; 0 is the model's own. Nothing is recorded, dropout is off.
// Errors: an empty prompt; a context below 0 or longer than the model takes.
void generate(const Model& model, std::span<const int64_t> prompt, int64_t count, const Sampling& sampling, Device device,
    const std::function<bool(int64_t token)>& use, int64_t context = 0);

// A token that was drawn, and the logits from which it was drawn. Returns false if its text ends with it.
using UseOfToken = std::function<bool(int64_t sample, int64_t token, std::span<const double> logits_v)>;

inline constexpr int64_t kMaxSamples = 65536;
void check_samples(int64_t samples);  // error: fewer than 1 or more than kMaxSamples

// Several texts that begin alike and go on in turns: ids are given to all of them, and then drawn for each. The key/value cache is kept
// between the turns.
class Continuation {
 public:
  // Takes the arguments of generate_samples.
  Continuation(const Model& model, int64_t samples, const Sampling& sampling, Device device, int64_t context = 0);
  ~Continuation();

  // Appends the ids to every text; they are read with the next draw.
  void append(std::span<const int64_t> ids);
  // Draws `count` ids for every text, or until `use` has returned false for all of them. What was drawn is part of the text.
  // Error: nothing was appended yet.
  void draw(int64_t count, const UseOfToken& use);

 private:
  const Model& model_;
  Sampling sampling_;
  Device device_;
  int64_t context_;
  std::vector<std::vector<int64_t>> texts_s_;  // all of one length
  std::unique_ptr<DecodingState> state_;
  int64_t read_ = 0;    // positions in the state
  int64_t unread_ = 0;  // the last ids of every text, which the state does not have
  int64_t drawn_ = 0;   // draws so far, which numbers them
};

// The same for several texts at once, which begin with the same prompt; each has draws of its own, and sample 0 the draws of generate.
// Errors also: as for check_samples.
void generate_samples(const Model& model, std::span<const int64_t> prompt, int64_t samples, int64_t count, const Sampling& sampling,
    Device device, const UseOfToken& use, int64_t context = 0);

}  // namespace ricci
