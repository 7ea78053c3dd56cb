// The parameters before the first step: a start from another run (`init` in a run file), with its weights and the keys of its model, and
// parameters that a training leaves as they are (`freeze`).
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "apps/run/imported_template.h"
#include "apps/run/train_config.h"
#include "apps/terminal/nearest.h"
#include "core/error.h"
#include "core/files/safetensors.h"
#include "data/tokenizers/tokenizer.h"
#include "models/model.h"

namespace ricci::apps {

// A key that `init` was trained with.
struct InitKey {
  std::string value;
  std::string said;  // the same, unless the value follows from the sizes of the model or from the tokenizer: then the user's word, such as
                     // "null" of model.ff
};

// The keys of model and tokenizer that `init` was trained with, as assignments for load_config. If init_changes lists the tokenizer, keys
// that follow from it are left out. Keys that follow from the sizes of the model follow from the sizes of the new one. Without an init
// the list is empty.
std::vector<std::string> keys_of_init(const TrainConfig& config);

// For plans: the size of the vocabulary that a training of this config would have. The config gives it; else the tokenizer does: the one
// that `init` hands on, the one beside `file` where that is the config.yaml of a run, or the one made for the data. Errors: as for
// InitSource and open_corpus.
int64_t planned_vocab(const TrainConfig& config, const std::string& file);

// The weights that a new run starts from.
class InitSource {
 public:
  // Opens config.init. Errors: as for RunFolder::open_weights; a key of this run that is not as in `init`,
  // and not in init_changes; a name there that is no such key. Dropout may always differ.
  explicit InitSource(const TrainConfig& config);

  // The tokenizer that the new run takes over, or null if it makes its own, by the key tokenizer.
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return kept_tokenizer_; }
  // The imported template of conversations that it takes over with the tokenizer. A run that learns conversations learns ours instead.
  const ImportedTemplate& talks() const { return talks_; }

  // Gives every parameter of the model its value from `init`. What init_changes lets differ starts as the model has drawn it:
  //   model.ctx   the first rows of the position table are taken over; a longer table ends with drawn ones
  //   tokenizer   rows of tok and head are taken over for tokens that both vocabularies write alike and once; the others are drawn
  //   model.family, model.classes, model.tie   the head is drawn;   model.head_bias   its bias;   model.positions   the table
  // Returns a line about it. Errors name the file and the tensor that is missing, surplus or misshapen; a file of another tokenizer, where
  // init_changes does not list it.
  std::string load(Model& model, const Tokenizer& tokenizer) const;

 private:
  bool changed(const std::string& key) const;
  bool drawn_anew(const std::string& path) const;
  Tensor value_of(const std::string& path, const Tensor& drawn, const Tokenizer& tokenizer, std::string& notes) const;

  TrainConfig config_;
  std::map<std::string, InitKey> before_;  // the keys of init
  std::shared_ptr<const Tokenizer> old_tokenizer_, kept_tokenizer_;
  std::shared_ptr<const SafetensorsFile> weights_;
  ImportedTemplate talks_;
  std::string note_;  // about talks_
};

// ---- freeze
// True if the path is the pattern, or starts with it up to a dot: tok, blocks.0.fc, blocks.*.ln1. An asterisk fits any one part
// between dots.
inline bool fits_path(const std::string& pattern, const std::string& path) {
  for (size_t in_pattern = 0, in_path = 0; in_path <= path.size();) {
    const size_t end = std::min(pattern.find('.', in_pattern), pattern.size()), path_end = std::min(path.find('.', in_path), path.size());
    const std::string part = pattern.substr(in_pattern, end - in_pattern);
    if (part != "*" && part != path.substr(in_path, path_end - in_path)) return false;
    if (end == pattern.size()) return true;
    in_pattern = end + 1;
    in_path = path_end + 1;
  }
  return false;
}

// Every path, and every beginning of one up to a dot.
inline std::vector<std::string> beginnings(Model& model) {
  std::set<std::string> all;
  model.each_parameter([&](const std::string& path, Parameter&) {
    for (size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1)) all.insert(path.substr(0, dot));
    all.insert(path);
  });
  return {all.begin(), all.end()};
}

// Marks every parameter whose path fits one of the patterns. Errors: a pattern that fits no parameter, with the nearest that does;
// nothing is left to train.
inline void freeze_parameters(Model& model, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    bool found = false;
    model.each_parameter([&](const std::string& path, Parameter& p) {
      if (fits_path(pattern, path)) found = p.frozen = true;
    });
    if (!found) fail("freeze: '{}' fits no parameter{}", {one_line(pattern), nearest_note(one_line(pattern), beginnings(model))});
  }
  if (model.trained_parameters().empty()) fail("freeze: no parameter is left to train");
}

}  // namespace ricci::apps
