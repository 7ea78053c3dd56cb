#include "apps/run/folder/provenance.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <sstream>

#include "apps/run/config/config.h"
#include "core/error.h"

namespace ricci::apps {
namespace {

constexpr const char *kConfig = "config", *kFollowing = "following", *kTokenizer = "tokenizer";

bool shapes_model(const std::string& key) { return key.starts_with("model.") || key == "context"; }

// Metadata are UTF-8, paths may not be.
std::string ascii(const std::string& text) {
  std::string result;
  for (const char c : text)
    result += static_cast<unsigned char>(c) < 128 ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return result;
}

// The values that count, by key. A run file may leave the size of the vocabulary to the tokenizer.
std::map<std::string, std::string> values_of(TrainConfig config, const Tokenizer* tokenizer, Compare what) {
  if (tokenizer) config.model.vocab = tokenizer->vocab_size();
  std::map<std::string, std::string> values;
  for (const Field& field : fields_of(config))
    if (field.is_read && !field.is_free && (what == Compare::training || shapes_model(field.key)))
      values[field.key] = ascii(value_text(field));
  return values;
}

// A file may be named by another path than before. What matters of it is compared by its contents.
std::set<std::string> keys_of_files(TrainConfig config) {
  std::set<std::string> keys;
  for (const Field& field : fields_of(config))
    if (field.names_file) keys.insert(field.key);
  return keys;
}

// Of a model that came without a tokenizer: any may be put beside it.
constexpr const char* kAnyTokenizer = "any";

std::string hash_of(const Tokenizer* tokenizer) { return tokenizer ? fmt::format("{:016x}", tokenizer->hash()) : kAnyTokenizer; }

Metadata provenance(const TrainConfig& config, const Tokenizer* tokenizer, Compare what) {
  std::string lines;
  for (const auto& [key, value] : values_of(config, tokenizer, what)) lines += key + ": " + value + "\n";
  std::string following;
  for (const auto& [key, said] : config.following)
    if (shapes_model(key)) following += key + ": " + said + "\n";
  return {{kConfig, lines}, {kFollowing, following}, {kTokenizer, hash_of(tokenizer)}};
}

}  // namespace

Metadata provenance_of_model(const TrainConfig& config, const Tokenizer* tokenizer) {
  return provenance(config, tokenizer, Compare::model);
}

Metadata provenance_of_training(const TrainConfig& config, const Tokenizer* tokenizer) {
  return provenance(config, tokenizer, Compare::training);
}

bool tells_tokenizer(const SafetensorsFile& file, const Tokenizer& tokenizer) {
  const auto told = file.metadata().find(kTokenizer);
  return told == file.metadata().end() || told->second == kAnyTokenizer || told->second == hash_of(&tokenizer);
}

void check_provenance(const SafetensorsFile& file, const TrainConfig& config, const Tokenizer* tokenizer, Compare what,
    const std::function<void(const std::string&)>& warn) {
  const auto told = file.metadata().find(kConfig), vocabulary = file.metadata().find(kTokenizer);
  if (told == file.metadata().end() || vocabulary == file.metadata().end())
    return warn(format_message(
        "{}: it does not tell what it was trained with; the config and the tokenizer beside it are believed", {file.path()}));
  const std::map<std::string, std::string> now = values_of(config, tokenizer, what);
  const std::set<std::string> named_files = keys_of_files(config);
  std::istringstream lines(told->second);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": ");
    const auto found = now.find(line.substr(0, colon));
    if (colon == line.npos || found == now.end() || named_files.contains(found->first))
      continue;  // a key that does not count here, or is no more
    const std::string then = line.substr(colon + 2);
    if (then != found->second) fail("{}: it was trained with {}: {}, not {}", {file.path(), found->first, then, found->second});
  }
  if (tokenizer && !tells_tokenizer(file, *tokenizer))
    fail("{}: it was trained with another tokenizer than the one beside it", {file.path()});
}

}  // namespace ricci::apps
