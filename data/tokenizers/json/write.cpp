// Tokenizers as tokenizer.json files that Hugging Face's tokenizers read. The order of the members is part of the format: shards and
// checkpoints hold a hash of the text.
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/words/word_tokenizer.h"
#include "data/tokenizers/words/wordpiece_tokenizer.h"

namespace ricci {
namespace {

Json json_of(const AddedToken& token) {
  Json json = {{"id", token.id}, {"content", token.content}, {"single_word", token.single_word}, {"lstrip", token.lstrip},
      {"rstrip", token.rstrip}, {"normalized", token.normalized}, {"special", token.special}};
  if (token.bos) json["bos"] = true;
  if (token.eos) json["eos"] = true;
  return json;
}

// The pieces of the ids below `end`, in the order of the ids.
Json json_of(const Vocabulary& vocabulary, int64_t end) {
  Json json = Json::object();
  auto& members = json.get_ref<Json::object_t&>();
  members.reserve(static_cast<size_t>(end));
  for (int64_t id = 0; id < end; ++id)  // appended without a search, which would take minutes
    if (vocabulary.has(id)) members.emplace_back(std::string(vocabulary.piece(id)), id);
  return json;
}

struct Components {
  Json normalizer, pre_tokenizer, post_processor, decoder, model;
};

Json json_of(const PieceTokenizer& tokenizer, Components c) {
  Json added = Json::array();
  for (const AddedToken& token : tokenizer.added_tokens()) added.push_back(json_of(token));
  return {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}, {"added_tokens", std::move(added)},
      {"normalizer", std::move(c.normalizer)}, {"pre_tokenizer", std::move(c.pre_tokenizer)},
      {"post_processor", std::move(c.post_processor)}, {"decoder", std::move(c.decoder)}, {"model", std::move(c.model)}};
}

Json byte_level(bool add_prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", add_prefix_space}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

Json pre_tokenizer_of(const BpeOptions& options) {
  if (options.pattern == &split_patterns()[0]) return byte_level(options.add_prefix_space, true);
  const bool is_digits = options.pattern == &split_pattern_of_name("smollm");
  const Json digits = {{"type", "Digits"}, {"individual_digits", true}},
             split = {{"type", "Split"}, {"pattern", {{"Regex", options.pattern->regex}}}, {"behavior", "Isolated"}, {"invert", false}};
  return {
      {"type", "Sequence"}, {"pretokenizers", Json::array({is_digits ? digits : split, byte_level(options.add_prefix_space, is_digits)})}};
}

// A template that puts a piece before every text.
Json template_of(const std::string& first, int64_t id) {
  const auto part = [](const char* kind, const std::string& name, int type) {
    return Json::object({{kind, {{"id", name}, {"type_id", type}}}});
  };
  const Json a = part("Sequence", "A", 0), b = part("Sequence", "B", 1);
  return {{"type", "TemplateProcessing"}, {"single", Json::array({part("SpecialToken", first, 0), a})},
      {"pair", Json::array({part("SpecialToken", first, 0), a, part("SpecialToken", first, 1), b})},
      {"special_tokens", {{first, {{"id", first}, {"ids", Json::array({id})}, {"tokens", Json::array({first})}}}}}};
}

Json merges_of(const BpeTokenizer& tokenizer) {
  Json merges = Json::array();
  for (const Merges::Merge& merge : tokenizer.merges().all())
    merges.push_back(Json::array({tokenizer.vocabulary().piece(merge.left), tokenizer.vocabulary().piece(merge.right)}));
  return merges;
}

}  // namespace

Json PieceTokenizer::model_json() const { return json_with(json_of(vocabulary_, model_size_)); }

// Version 0.1.0 wrote all added tokens into the vocabulary.
Json PieceTokenizer::hashed_model_json() const { return json_with(json_of(vocabulary_, vocabulary_.size())); }

Json BpeTokenizer::json_with(Json vocabulary) const {
  Components c;
  if (options_.compose) c.normalizer = {{"type", "NFC"}};
  c.pre_tokenizer = pre_tokenizer_of(options_);
  const bool writes_template = options_.post_processor.is_null() && !options_.first.empty();
  c.post_processor = writes_template ? template_of(options_.first, find(options_.first)) : options_.post_processor;
  c.decoder = byte_level(true, true);
  c.model = {{"type", "BPE"}, {"dropout", nullptr}, {"unk_token", options_.unknown.empty() ? Json() : Json(options_.unknown)},
      {"continuing_subword_prefix", nullptr}, {"end_of_word_suffix", nullptr}, {"fuse_unk", false}, {"byte_fallback", false},
      {"ignore_merges", options_.ignore_merges}, {"vocab", std::move(vocabulary)}, {"merges", merges_of(*this)}};
  return json_of(*this, std::move(c));
}

Json WordPieceTokenizer::json_with(Json vocabulary) const {
  Components c;
  c.normalizer = {{"type", "BertNormalizer"}, {"clean_text", options_.text.clean}, {"handle_chinese_chars", options_.text.ideographs},
      {"strip_accents", options_.text.strip_accents}, {"lowercase", options_.text.lowercase}};
  c.pre_tokenizer = {{"type", "BertPreTokenizer"}};
  c.post_processor = options_.post_processor;
  c.decoder = {{"type", "WordPiece"}, {"prefix", options_.prefix}, {"cleanup", options_.cleanup}};
  c.model = {{"type", "WordPiece"}, {"unk_token", options_.unknown}, {"continuing_subword_prefix", options_.prefix},
      {"max_input_chars_per_word", options_.longest_word}, {"vocab", std::move(vocabulary)}};
  return json_of(*this, std::move(c));
}

Json WordTokenizer::json_with(Json vocabulary) const {
  Components c;
  c.pre_tokenizer = {{"type", "WhitespaceSplit"}};
  c.model = {{"type", "WordLevel"}, {"vocab", std::move(vocabulary)}, {"unk_token", unknown()}};
  return json_of(*this, std::move(c));
}

}  // namespace ricci
