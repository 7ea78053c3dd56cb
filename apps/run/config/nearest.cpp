#include "apps/run/config/nearest.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "core/error.h"

namespace ricci::apps {
namespace {

constexpr OtherName kOtherNames[] = {
    // nanoGPT: train.py and model.py
    {"learning_rate", "lr"},
    {"max_iters", "steps"},
    {"lr_decay_iters", "schedule_steps"},
    {"warmup_iters", "warmup"},
    {"decay_lr", "schedule"},
    {"grad_clip", "clip"},
    {"batch_size", "batch"},
    {"gradient_accumulation_steps", "accumulation"},
    {"eval_interval", "eval_every"},
    {"eval_iters", "eval_batches"},
    {"log_interval", "log_every"},
    {"init_from", "init"},
    {"out_dir", "name"},
    {"wandb_run_name", "name"},
    {"dataset", "data"},
    {"dtype", "precision"},
    {"block_size", "model.ctx"},
    {"n_layer", "model.layers"},
    {"n_head", "model.heads"},
    {"n_embd", "model.d"},
    {"bias", "model.bias"},
    {"dropout", "model.dropout"},
    {"vocab_size", "model.vocab"},
    // transformers: TrainingArguments and configurations of models
    {"max_steps", "steps"},
    {"warmup_steps", "warmup"},
    {"lr_scheduler_type", "schedule"},
    {"max_grad_norm", "clip"},
    {"per_device_train_batch_size", "batch"},
    {"eval_steps", "eval_every"},
    {"logging_steps", "log_every"},
    {"save_steps", "checkpoint_every"},
    {"save_total_limit", "keep_checkpoints"},
    {"output_dir", "name"},
    {"adam_beta1", "beta1"},
    {"adam_beta2", "beta2"},
    {"adam_epsilon", "eps"},
    {"optim", "optimizer"},
    {"early_stopping_patience", "patience"},
    {"gradient_checkpointing", "recompute"},
    {"hidden_size", "model.d"},
    {"d_model", "model.d"},
    {"num_hidden_layers", "model.layers"},
    {"num_layers", "model.layers"},
    {"num_attention_heads", "model.heads"},
    {"num_heads", "model.heads"},
    {"intermediate_size", "model.ff"},
    {"n_inner", "model.ff"},
    {"n_positions", "model.ctx"},
    {"n_ctx", "model.ctx"},
    {"max_position_embeddings", "model.ctx"},
    {"seq_len", "context"},
    {"seq_length", "context"},
    {"sequence_length", "context"},
    {"max_seq_length", "context"},
    {"context_length", "model.ctx"},
    {"model_type", "model.family"},
    {"tie_embeddings", "model.tie"},
    {"tie_word_embeddings", "model.tie"},
    {"attention_dropout", "model.dropout"},
    {"save_every", "checkpoint_every"},
    {"save_interval", "checkpoint_every"},
    {"input", "data"},
    {"train_file", "data"},
    {"validation_file", "validation"},
    {"num_labels", "model.classes"},
};

// Empty: neither of them has such a key.
std::string_view own_name(std::string_view there) {
  for (const OtherName& name : kOtherNames)
    if (name.there == there) return name.here;
  return {};
}

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

}  // namespace

std::span<const OtherName> other_names() { return kOtherNames; }

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

std::string nearest_note(std::string_view word, const std::vector<std::string>& known) {
  word = word.substr(0, 100);
  size_t least = SIZE_MAX;
  std::string best;
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    best = candidate;
  }
  return is_near(least, word.size()) ? ", the nearest is '" + one_line(best) + "'" : "";
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
  for (const OtherName& name : kOtherNames) weigh(edit_distance(last_part(start), name.there) + 1, name.here);
  for (const Field& field : fields) {
    consider(field.key);
    if (const size_t dot = field.key.find('.'); dot != field.key.npos) consider(field.key.substr(0, dot));
  }
  const bool moved = last_part(start) == last_part(best);
  if (is_best && (moved || is_near(least, last_part(start).size()))) return format_message(", the nearest known key is '{}'", {best});
  return "; --help-config prints every key";
}

}  // namespace ricci::apps
