// Reads tokenizer.json files: Hugging Face's, and ricci's own for what they cannot describe.
#include <algorithm>

#include "core/error.h"
#include "core/json/value.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/eos_tokenizer.h"
#include "data/tokenizers/words/word_tokenizer.h"
#include "data/tokenizers/words/wordpiece_tokenizer.h"

namespace ricci {
namespace {

// A member of a type. Error: it is of another type.
template <class T> T value_or(const JsonValue& object, const char* key, const T& otherwise) {
  return object.member<T>(key, "tokenizer: '", "' in the JSON is not ").value_or(otherwise);
}
std::string text_at(const JsonValue& object, const char* key, const std::string& otherwise) { return value_or(object, key, otherwise); }

// The type of a component, such as the pre_tokenizer; empty where it is null.
std::string type_of(const JsonValue& component) { return text_at(component, "type", ""); }

[[noreturn]] void unsupported(const char* part, const std::string& found, const char* supported) {
  fail("tokenizer.json: the {} '{}' is not supported, {}", {part, one_line(found), supported});
}

// A component must be what ricci does by itself.
void expect(bool holds, const char* part, const std::string& found, const char* supported) {
  if (!holds) unsupported(part, found.empty() ? "null" : found, supported);
}

Vocabulary vocabulary_of(const JsonValue& model) {
  if (!model["vocab"].is_object()) fail("tokenizer.json: the model has no vocabulary of pieces and ids");
  return Vocabulary::of_json(model["vocab"]);
}

// Added tokens keep the ids of the file. Hugging Face's tokenizers give an added token that is not in the vocabulary the next free number,
// so the ids differ if the vocabulary has a hole.
std::vector<AddedToken> added_tokens_of(const JsonValue& root) {
  std::vector<AddedToken> tokens;
  for (const JsonValue& each : root["added_tokens"].items())
    tokens.push_back({.id = value_or<int64_t>(each, "id", -1),
        .content = text_at(each, "content", ""),
        .single_word = value_or(each, "single_word", false),
        .lstrip = value_or(each, "lstrip", false),
        .rstrip = value_or(each, "rstrip", false),
        .normalized = value_or(each, "normalized", true),
        .special = value_or(each, "special", false),
        .bos = value_or(each, "bos", false),
        .eos = value_or(each, "eos", false)});
  return tokens;
}

std::string kept_json(const JsonValue& component) { return component.is_null() ? "" : component.to_json(); }

// "a b", or the list of both.
BpeTokenizer::Pair merge_of(const JsonValue& merge, size_t rank) {
  const std::string& joined = merge.is_text() ? merge.text() : "";
  const size_t blank = joined.find(' ');
  const bool pair = merge.is_list() && merge.items().size() == 2 && merge.items()[0].is_text() && merge.items()[1].is_text();
  if (pair) return {merge.items()[0].text(), merge.items()[1].text()};
  if (blank == joined.npos) fail("tokenizer.json: merge {} is not two pieces", {rank});
  return {joined.substr(0, blank), joined.substr(blank + 1)};
}

// The piece that a template alone, or in a sequence of components, puts before every text; empty if there is no such template.
std::string first_of(const JsonValue& post_processor) {
  for (const JsonValue& each : post_processor["processors"].items())
    if (const std::string piece = first_of(each); !piece.empty()) return piece;
  const JsonValue::List& parts = post_processor["single"].items();
  const bool is_first_alone = parts.size() == 2 && parts[0]["SpecialToken"].is_object() && parts[1]["Sequence"].is_object();
  if (type_of(post_processor) != "TemplateProcessing" || !is_first_alone) return "";
  return text_at(parts[0]["SpecialToken"], "id", "");
}

// The division of a text into words: by a ByteLevel component alone, or by a pattern and then ByteLevel. The pattern smollm is Digits.
void read_pre_tokenizer(const JsonValue& component, BpeOptions& options) {
  constexpr const char* supported = "supported for BPE are ByteLevel, and Split by a known pattern or Digits followed by ByteLevel";
  const bool sequence = type_of(component) == "Sequence";
  const JsonValue::List alone = sequence ? JsonValue::List() : JsonValue::List{component};
  const JsonValue::List& parts = sequence ? component["pretokenizers"].items() : alone;
  expect(parts.size() == 1 || parts.size() == 2, "pre_tokenizer", type_of(component), supported);
  const JsonValue& last = parts.back();
  expect(type_of(last) == "ByteLevel", "pre_tokenizer", type_of(last), supported);
  options.add_prefix_space = value_or(last, "add_prefix_space", true);
  if (parts.size() == 1) {
    expect(value_or(last, "use_regex", true), "pre_tokenizer", "ByteLevel with use_regex: false", supported);
    return;
  }
  const JsonValue& split = parts.front();
  if (type_of(split) == "Digits") {
    expect(value_or(split, "individual_digits", false), "pre_tokenizer", "Digits without individual_digits", supported);
    expect(value_or(last, "use_regex", true), "pre_tokenizer", "ByteLevel with use_regex: false after Digits", supported);
    expect(!options.add_prefix_space, "pre_tokenizer", "ByteLevel with add_prefix_space after Digits", supported);
    options.pattern = &split_pattern_of_name("smollm");
    return;
  }
  expect(type_of(split) == "Split", "pre_tokenizer", type_of(split), supported);
  expect(!value_or(last, "use_regex", true), "pre_tokenizer", "ByteLevel with use_regex after Split", supported);
  expect(text_at(split, "behavior", "") == "Isolated" && !value_or(split, "invert", false), "pre_tokenizer",
      "Split with behavior " + text_at(split, "behavior", ""), "supported is Isolated");
  const JsonValue& regex = split["pattern"]["Regex"];
  expect(regex.is_text(), "pre_tokenizer", "Split without a regular expression", supported);
  options.pattern = &split_pattern_of_regex(regex.text());
  // The space is put before every word then, which no known tokenizer does.
  expect(!options.add_prefix_space, "pre_tokenizer", "ByteLevel with add_prefix_space after Split", supported);
}

std::shared_ptr<const Tokenizer> read_bpe(const JsonValue& root, std::vector<AddedToken> added) {
  const JsonValue& model = root["model"];
  BpeOptions options;
  for (const char* suffix : {"continuing_subword_prefix", "end_of_word_suffix"})
    expect(text_at(model, suffix, "").empty(), "model", std::string("BPE with ") + suffix, "supported is byte-level BPE");
  expect(!value_or(model, "byte_fallback", false), "model", "BPE with byte_fallback", "supported is byte-level BPE");
  expect(model["dropout"].is_null() || model["dropout"].to_json() == "0.0", "model", "BPE with dropout", "supported is BPE without");
  read_pre_tokenizer(root["pre_tokenizer"], options);
  const std::string normalizer = type_of(root["normalizer"]);
  const bool nothing = root["normalizer"].is_null() || (normalizer == "Sequence" && root["normalizer"]["normalizers"].items().empty());
  expect(nothing || normalizer == "NFC", "normalizer", normalizer, "supported for BPE are NFC and null");
  const std::string decoder = type_of(root["decoder"]);
  expect(decoder.empty() || decoder == "ByteLevel", "decoder", decoder, "supported for BPE is ByteLevel");
  options.compose = normalizer == "NFC";
  options.ignore_merges = value_or(model, "ignore_merges", false);
  options.unknown = text_at(model, "unk_token", "");
  expect(options.unknown.empty() || !value_or(model, "fuse_unk", false), "model", "BPE with fuse_unk", "supported is BPE without");
  options.post_processor = kept_json(root["post_processor"]);
  options.first = first_of(root["post_processor"]);
  std::vector<BpeTokenizer::Pair> merges;
  for (const JsonValue& merge : model["merges"].items()) merges.push_back(merge_of(merge, merges.size()));
  return std::make_shared<BpeTokenizer>(vocabulary_of(model), merges, std::move(added), std::move(options));
}

std::shared_ptr<const Tokenizer> read_wordpiece(const JsonValue& root, std::vector<AddedToken> added) {
  const JsonValue& model = root["model"];
  const JsonValue& normalizer = root["normalizer"];
  const std::string pre_tokenizer = type_of(root["pre_tokenizer"]), decoder = type_of(root["decoder"]);
  expect(type_of(normalizer) == "BertNormalizer", "normalizer", type_of(normalizer), "supported for WordPiece is BertNormalizer");
  expect(pre_tokenizer == "BertPreTokenizer", "pre_tokenizer", pre_tokenizer, "supported for WordPiece is BertPreTokenizer");
  expect(decoder.empty() || decoder == "WordPiece", "decoder", decoder, "supported for WordPiece is WordPiece");
  WordPieceOptions options;
  options.text.lowercase = value_or(normalizer, "lowercase", true);
  options.text.clean = value_or(normalizer, "clean_text", true);
  options.text.ideographs = value_or(normalizer, "handle_chinese_chars", true);
  options.text.strip_accents = value_or(normalizer, "strip_accents", options.text.lowercase);
  options.unknown = text_at(model, "unk_token", options.unknown);
  options.prefix = text_at(model, "continuing_subword_prefix", options.prefix);
  options.longest_word = value_or(model, "max_input_chars_per_word", options.longest_word);
  options.cleanup = value_or(root["decoder"], "cleanup", true);
  options.post_processor = kept_json(root["post_processor"]);
  expect(text_at(root["decoder"], "prefix", options.prefix) == options.prefix, "decoder", "WordPiece with another prefix than its model",
      "supported is the same");
  return std::make_shared<WordPieceTokenizer>(vocabulary_of(model), std::move(added), std::move(options));
}

std::shared_ptr<const Tokenizer> read_word(const JsonValue& root, std::vector<AddedToken> added) {
  const std::string normalizer = type_of(root["normalizer"]), pre_tokenizer = type_of(root["pre_tokenizer"]);
  expect(root["normalizer"].is_null(), "normalizer", normalizer, "supported for WordLevel is null");
  expect(pre_tokenizer == "WhitespaceSplit", "pre_tokenizer", pre_tokenizer, "supported for WordLevel is WhitespaceSplit");
  return std::make_shared<WordTokenizer>(vocabulary_of(root["model"]), std::move(added), text_at(root["model"], "unk_token", "<unk>"));
}

// Hugging Face's format; a piece that is not empty is added to the vocabulary.
std::shared_ptr<const Tokenizer> read_hugging_face(const JsonValue& root, const std::string& piece) {
  const std::string type = text_at(root["model"], "type", root["model"]["merges"].is_null() ? "" : "BPE");
  std::vector<AddedToken> added = added_tokens_of(root);
  if (!piece.empty()) {
    int64_t next = Vocabulary::of_json(root["model"]["vocab"]).size();
    for (const AddedToken& token : added) next = std::max(next, token.id + 1);
    added.push_back({.id = next, .content = piece});
  }
  if (type == "BPE") return read_bpe(root, std::move(added));
  if (type == "WordPiece") return read_wordpiece(root, std::move(added));
  if (type == "WordLevel") return read_word(root, std::move(added));
  unsupported("model", type, "supported are BPE, WordPiece and WordLevel");
}

std::shared_ptr<const Tokenizer> read_any(const JsonValue& root, const std::string& piece);

std::shared_ptr<const Tokenizer> read_eos(const JsonValue& root) {
  const Eos after = choice_of<Eos>("tokenizer: behind", text_at(root, "behind", ""));
  return std::make_shared<EosTokenizer>(read_any(root["tokenizer"], ""), after, text_at(root, "piece", ""));
}

std::shared_ptr<const Tokenizer> read_any(const JsonValue& root, const std::string& piece) {
  if (root["model"].is_object()) return read_hugging_face(root, piece);
  if (!root["name"].is_text()) fail("tokenizer: the JSON has neither a \"model\", as Hugging Face's have, nor a text \"name\"");
  const std::string& name = root["name"].text();
  const std::string end = text_at(root, "end", name == "char" ? piece : "");
  if (!piece.empty() && end != piece) fail("{} tokenizer: no piece can be added to its vocabulary", {one_line(name)});
  if (name == "byte") return std::make_shared<ByteTokenizer>();
  if (name == "eos") return read_eos(root);
  if (name != "char") fail("tokenizer: unknown name {}, known are byte, char and eos", {one_line(name)});
  if (!root["characters"].is_text()) fail("tokenizer: the JSON has no text \"characters\"");
  return std::make_shared<CharTokenizer>(root["characters"].text(), end);
}

}  // namespace

std::shared_ptr<const Tokenizer> tokenizer_from_json(std::string_view json) { return read_any(parse_json(json, "tokenizer"), ""); }

std::shared_ptr<const Tokenizer> with_added_piece(const Tokenizer& tokenizer, const std::string& piece) {
  return read_any(parse_json(tokenizer.to_json(), "tokenizer"), piece);
}

}  // namespace ricci
