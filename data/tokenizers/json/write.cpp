// Tokenizers as tokenizer.json files that Hugging Face's tokenizers read.
#include "core/json/value.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/words/word_tokenizer.h"
#include "data/tokenizers/words/wordpiece_tokenizer.h"

namespace ricci {
namespace {

const char* boolean(bool value) { return value ? "true" : "false"; }

std::string text_or_null(const std::string& text) { return text.empty() ? "null" : quoted_json(text); }

std::string json_of(const AddedToken& token) {
  return R"({"id":)" + std::to_string(token.id) + R"(,"content":)" + quoted_json(token.content) + R"(,"single_word":)" +
         boolean(token.single_word) + R"(,"lstrip":)" + boolean(token.lstrip) + R"(,"rstrip":)" + boolean(token.rstrip) +
         R"(,"normalized":)" + boolean(token.normalized) + R"(,"special":)" + boolean(token.special) + (token.bos ? R"(,"bos":true)" : "") +
         (token.eos ? R"(,"eos":true)" : "") + "}";
}

// The pieces of the ids below `end`, in the order of the ids.
std::string json_of(const Vocabulary& vocabulary, int64_t end) {
  std::string json = "{";
  for (int64_t id = 0; id < end; ++id) {
    if (!vocabulary.has(id)) continue;
    json += (json.size() > 1 ? "," : "") + quoted_json(vocabulary.piece(id)) + ":" + std::to_string(id);
  }
  return json + "}";
}

struct Components {
  std::string normalizer, pre_tokenizer, post_processor, decoder, model;
};

std::string json_of(const PieceTokenizer& tokenizer, const Components& c) {
  std::string added;
  for (const AddedToken& token : tokenizer.added_tokens()) added += (added.empty() ? "" : ",") + json_of(token);
  return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)" + added + R"(],"normalizer":)" + c.normalizer +
         R"(,"pre_tokenizer":)" + c.pre_tokenizer + R"(,"post_processor":)" + (c.post_processor.empty() ? "null" : c.post_processor) +
         R"(,"decoder":)" + c.decoder + R"(,"model":)" + c.model + "}";
}

std::string byte_level(bool add_prefix_space, bool use_regex) {
  return std::string(R"({"type":"ByteLevel","add_prefix_space":)") + boolean(add_prefix_space) + R"(,"trim_offsets":true,"use_regex":)" +
         boolean(use_regex) + "}";
}

std::string pre_tokenizer_of(const BpeOptions& options) {
  if (options.pattern == &split_patterns()[0]) return byte_level(options.add_prefix_space, true);
  if (options.pattern == &split_pattern_of_name("smollm"))
    return R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)" +
           byte_level(options.add_prefix_space, true) + "]}";
  return R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)" + quoted_json(options.pattern->regex) +
         R"(},"behavior":"Isolated","invert":false},)" + byte_level(options.add_prefix_space, false) + "]}";
}

// A template that puts a piece before every text.
std::string template_of(const std::string& first, int64_t id) {
  const std::string piece = quoted_json(first), token = R"({"SpecialToken":{"id":)" + piece + R"(,"type_id":)",
                    a = R"({"Sequence":{"id":"A","type_id":0}})", b = R"({"Sequence":{"id":"B","type_id":1}})";
  return R"({"type":"TemplateProcessing","single":[)" + token + "0}}," + a + R"(],"pair":[)" + token + "0}}," + a + "," + token + "1}}," +
         b + R"(],"special_tokens":{)" + piece + R"(:{"id":)" + piece + R"(,"ids":[)" + std::to_string(id) + R"(],"tokens":[)" + piece +
         "]}}}";
}

std::string merges_of(const BpeTokenizer& tokenizer) {
  std::string json = "[";
  for (const Merges::Merge& merge : tokenizer.merges().all())
    json += (json.size() > 1 ? ",[" : "[") + quoted_json(tokenizer.vocabulary().piece(merge.left)) + "," +
            quoted_json(tokenizer.vocabulary().piece(merge.right)) + "]";
  return json + "]";
}

}  // namespace

std::string PieceTokenizer::model_json() const { return json_with(json_of(vocabulary_, model_size_)); }

// Version 0.1.0 wrote all added tokens into the vocabulary.
std::string PieceTokenizer::hashed_model_json() const { return json_with(json_of(vocabulary_, vocabulary_.size())); }

std::string BpeTokenizer::json_with(const std::string& vocabulary) const {
  Components c;
  c.normalizer = options_.compose ? R"({"type":"NFC"})" : "null";
  c.pre_tokenizer = pre_tokenizer_of(options_);
  const bool writes_template = options_.post_processor.empty() && !options_.first.empty();
  c.post_processor = writes_template ? template_of(options_.first, find(options_.first)) : options_.post_processor;
  c.decoder = byte_level(true, true);
  c.model = R"({"type":"BPE","dropout":null,"unk_token":)" + text_or_null(options_.unknown) +
            R"(,"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"ignore_merges":)" +
            boolean(options_.ignore_merges) + R"(,"vocab":)" + vocabulary + R"(,"merges":)" + merges_of(*this) + "}";
  return json_of(*this, c);
}

std::string WordPieceTokenizer::json_with(const std::string& vocabulary) const {
  Components c;
  c.normalizer = std::string(R"({"type":"BertNormalizer","clean_text":)") + boolean(options_.text.clean) + R"(,"handle_chinese_chars":)" +
                 boolean(options_.text.ideographs) + R"(,"strip_accents":)" + boolean(options_.text.strip_accents) + R"(,"lowercase":)" +
                 boolean(options_.text.lowercase) + "}";
  c.pre_tokenizer = R"({"type":"BertPreTokenizer"})";
  c.post_processor = options_.post_processor;
  c.decoder = R"({"type":"WordPiece","prefix":)" + quoted_json(options_.prefix) + R"(,"cleanup":)" + boolean(options_.cleanup) + "}";
  c.model = R"({"type":"WordPiece","unk_token":)" + quoted_json(options_.unknown) + R"(,"continuing_subword_prefix":)" +
            quoted_json(options_.prefix) + R"(,"max_input_chars_per_word":)" + std::to_string(options_.longest_word) + R"(,"vocab":)" +
            vocabulary + "}";
  return json_of(*this, c);
}

std::string WordTokenizer::json_with(const std::string& vocabulary) const {
  Components c;
  c.normalizer = c.decoder = "null";
  c.pre_tokenizer = R"({"type":"WhitespaceSplit"})";
  c.model = R"({"type":"WordLevel","vocab":)" + vocabulary + R"(,"unk_token":)" + quoted_json(unknown()) + "}";
  return json_of(*this, c);
}

}  // namespace ricci
