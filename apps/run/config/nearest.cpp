#include "apps/run/config/nearest.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "core/error.h"

namespace ricci::apps {
namespace {

// Our keys, and their names in nanoGPT (train.py, model.py) and in transformers (TrainingArguments, configurations of models).
const std::vector<OtherNames> kOtherNames = {
    {"lr", {"learning_rate"}},
    {"steps", {"max_iters", "max_steps"}},
    {"schedule_steps", {"lr_decay_iters"}},
    {"warmup", {"warmup_iters", "warmup_steps"}},
    {"schedule", {"decay_lr", "lr_scheduler_type"}},
    {"clip", {"grad_clip", "max_grad_norm"}},
    {"batch", {"batch_size", "per_device_train_batch_size"}},
    {"accumulation", {"gradient_accumulation_steps"}},
    {"eval_every", {"eval_interval", "eval_steps"}},
    {"eval_batches", {"eval_iters"}},
    {"log_every", {"log_interval", "logging_steps"}},
    {"init", {"init_from"}},
    {"name", {"out_dir", "wandb_run_name", "output_dir"}},
    {"data", {"dataset", "input", "train_file"}},
    {"precision", {"dtype"}},
    {"model.ctx", {"block_size", "n_positions", "n_ctx", "max_position_embeddings", "context_length"}},
    {"model.layers", {"n_layer", "num_hidden_layers", "num_layers"}},
    {"model.heads", {"n_head", "num_attention_heads", "num_heads"}},
    {"model.kv_heads", {"num_key_value_heads"}},
    {"model.head_width", {"head_dim"}},
    {"model.norm_eps", {"rms_norm_eps", "layer_norm_epsilon"}},
    {"model.activation", {"hidden_act", "activation_function"}},
    {"model.d", {"n_embd", "hidden_size", "d_model"}},
    {"model.bias", {"bias"}},
    {"model.dropout", {"dropout", "attention_dropout"}},
    {"model.vocab", {"vocab_size"}},
    {"checkpoint_every", {"save_steps", "save_every", "save_interval"}},
    {"keep_checkpoints", {"save_total_limit"}},
    {"beta1", {"adam_beta1"}},
    {"beta2", {"adam_beta2"}},
    {"eps", {"adam_epsilon"}},
    {"optimizer", {"optim"}},
    {"patience", {"early_stopping_patience"}},
    {"recompute", {"gradient_checkpointing"}},
    {"model.ff", {"intermediate_size", "n_inner"}},
    {"context", {"seq_len", "seq_length", "sequence_length", "max_seq_length"}},
    {"model.family", {"model_type"}},
    {"model.tie", {"tie_embeddings", "tie_word_embeddings"}},
    {"validation", {"validation_file"}},
    {"model.classes", {"num_labels"}},
};

// The key of ours that other programs call `word`, or an empty text.
std::string_view own_name(std::string_view word) {
  for (const auto& [here, there] : kOtherNames)
    if (std::find(there.begin(), there.end(), word) != there.end()) return here;
  return {};
}

// The least number of slips that turns a into b, in bytes: a letter inserted, removed or replaced, or two neighbours swapped (the
// optimal string alignment distance).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, above(b.size() + 1), row(b.size() + 1);  // for the first i - 1, i and i + 1 letters of a
  std::iota(above.begin(), above.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({above[j] + (a[i] != b[j]), above[j + 1] + 1, row[j] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
    before = above;
    above.swap(row);
  }
  return above[b.size()];
}

// True if a word of this length may be a slip of the pen for another at this distance: one letter in four may be wrong.
bool is_near(size_t distance, size_t letters) { return distance <= (letters + 2) / 4; }

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

}  // namespace

const std::vector<OtherNames>& other_names() { return kOtherNames; }

std::string nearest_of(std::string_view word, const std::vector<std::string>& known) {
  word = word.substr(0, 100);
  size_t least = SIZE_MAX;
  std::string best;
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    best = candidate;
  }
  return is_near(least, word.size()) ? best : "";
}

std::string nearest_note(std::string_view word, const std::vector<std::string>& known) {
  const std::string nearest = nearest_of(word, known);
  return nearest.empty() ? "" : ", the nearest is '" + one_line(nearest) + "'";
}

std::string suggestion_for(const std::string& key, const std::vector<Field>& fields) {
  const std::string start = key.substr(0, 100);
  if (const std::string_view here = own_name(last_part(start)); !here.empty()) return format_message(", here it is '{}'", {here});
  size_t least = SIZE_MAX;
  std::string best;
  bool is_best = false;  // no other is as near
  const auto weigh = [&](size_t distance, std::string_view known) {
    if (distance > least || (distance == least && known == best)) return;
    is_best = distance < least;
    if (is_best) best = known;
    least = distance;
  };
  const auto consider = [&](const std::string& known) {
    weigh(std::min(edit_distance(start, known), edit_distance(last_part(start), last_part(known)) + 1), known);
  };
  for (const auto& [here, there] : kOtherNames)
    for (const std::string_view name : there) weigh(edit_distance(last_part(start), name) + 1, here);
  for (const Field& field : fields) {
    consider(field.key);
    if (const size_t dot = field.key.find('.'); dot != field.key.npos) consider(field.key.substr(0, dot));
  }
  const bool moved = last_part(start) == last_part(best);
  if (is_best && (moved || is_near(least, last_part(start).size()))) return format_message(", the nearest known key is '{}'", {best});
  return "; --help-config prints every key";
}

}  // namespace ricci::apps
