#include "apps/run/provenance.h"

#include <fmt/format.h>

#include "core/error.h"

namespace ricci::apps {
namespace {

constexpr const char *kTokenizerHash = "tokenizer", *kAnyTokenizer = "any";  // kAnyTokenizer: the model was imported without a tokenizer

// The keys to record and compare, without paths of files.
std::vector<Field> recorded_fields(TrainConfig& config, Compare keys) {
  std::vector<Field> fields = fields_of(config);
  std::erase_if(fields, [&](const Field& field) {
    bool names_file = false;
    each_path(field, [&](const std::string&) { names_file = true; });
    const bool shapes_model = field.key.starts_with("model.") || field.key == "context";
    return !field.is_read || field.is_free || names_file || (keys == Compare::model && !shapes_model);
  });
  return fields;
}

std::string hash_of(const Tokenizer* tokenizer) { return tokenizer ? fmt::format("{:016x}", tokenizer->hash()) : kAnyTokenizer; }

}  // namespace

std::string find_in(const Metadata& metadata, const char* name) {
  const auto found = metadata.find(name);
  return found == metadata.end() ? "" : found->second;
}

Metadata provenance(const TrainConfig& config, const Tokenizer* tokenizer, Compare keys) {
  TrainConfig known = resolved(config, tokenizer), given = config;
  given.model.vocab = config.given.contains("model.vocab") ? known.model.vocab : 0;
  std::vector<Field> following = recorded_fields(given, Compare::model);
  const std::vector<Field> all = recorded_fields(known, keys);
  std::erase_if(
      following, [&, before = following](const Field& field) { return value_text(before, field.key) == value_text(all, field.key); });
  return {{kConfigKeys, to_yaml(all)}, {"following", to_yaml(following)}, {kTokenizerHash, hash_of(tokenizer)}};
}

Settings settings_in(const Metadata& metadata, const char* name, const std::string& source) {
  TrainConfig any;
  return recorded_settings(find_in(metadata, name), source, fields_of(any));
}

bool fits_tokenizer(const Metadata& metadata, const Tokenizer& tokenizer) {
  const std::string was = find_in(metadata, kTokenizerHash);
  return was.empty() || was == kAnyTokenizer || was == hash_of(&tokenizer);
}

std::string difference(const Metadata& was, const TrainConfig& config, const Tokenizer* tokenizer, Compare keys) {
  TrainConfig known = resolved(config, tokenizer);
  const Settings before = settings_in(was, kConfigKeys);
  for (const Field& field : recorded_fields(known, keys)) {
    const Setting* const setting = find_setting(before, field.key);
    const std::string value = value_text(field);
    if (setting && parse_value(*setting->value, field) && value_text(field) != value)
      return format_message("{}: {}, not {}", {field.key, value_text(field), value});
  }
  return !tokenizer || fits_tokenizer(was, *tokenizer) ? "" : "a different tokenizer than the one next to it";
}

}  // namespace ricci::apps
