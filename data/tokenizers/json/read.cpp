// Reads tokenizer.json files: Hugging Face's, and ricci's own for what they cannot describe.
#include <algorithm>

#include "core/error.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/words/word_tokenizer.h"
#include "data/tokenizers/words/wordpiece_tokenizer.h"

namespace ricci {
namespace {

// A member of a type. Error: it is of another type.
template <class T> T value_or(const Json& object, const char* key, const T& otherwise) {
  return read_member<T>(object, key, "tokenizer").value_or(otherwise);
}
std::string text_at(const Json& object, const char* key, const std::string& otherwise = "") { return value_or(object, key, otherwise); }

// The type of a component, such as the pre_tokenizer; empty if it is null.
std::string type_of(const Json& component) { return text_at(component, "type"); }

// A component must be what ricci does by itself.
void expect(bool holds, const char* part, const std::string& found, const char* supported) {
  if (!holds) fail("tokenizer.json: the {} '{}' is not supported, {}", {part, found.empty() ? "null" : one_line(found), supported});
}

// The piece of Marks::first, and flags for the other marks. Tokens that are only pieces of the vocabulary become added tokens.
std::string add_marks(const Marks& marks, const Vocabulary& vocabulary, std::vector<AddedToken>& added) {
  const auto token_of = [&](int64_t id) -> AddedToken& {
    const auto found = std::find_if(added.begin(), added.end(), [&](const AddedToken& token) { return token.id == id; });
    if (found != added.end()) return *found;
    if (id < 0 || id >= vocabulary.size() || !vocabulary.has(id))
      fail("bpe tokenizer: the id {}, which marks where a text begins or ends, has no piece", {id});
    return added.emplace_back(AddedToken{.id = id, .content = std::string(vocabulary.piece(id))});
  };
  if (marks.begin >= 0) token_of(marks.begin).bos = true;
  for (const int64_t id : marks.ends) token_of(id).eos = true;
  return marks.first >= 0 ? token_of(marks.first).content : "";
}

// Added tokens keep the ids of the file. Hugging Face's tokenizers give an added token that is not in the vocabulary the next free number,
// so the ids differ if the vocabulary has a hole.
std::vector<AddedToken> added_tokens_of(const Json& root) {
  std::vector<AddedToken> tokens;
  for (const Json& each : member(root, "added_tokens"))
    tokens.push_back({.id = value_or<int64_t>(each, "id", -1),
        .content = text_at(each, "content"),
        .single_word = value_or(each, "single_word", false),
        .lstrip = value_or(each, "lstrip", false),
        .rstrip = value_or(each, "rstrip", false),
        .normalized = value_or(each, "normalized", true),
        .special = value_or(each, "special", false),
        .bos = value_or(each, "bos", false),
        .eos = value_or(each, "eos", false)});
  return tokens;
}

// "a b", or the list of both.
BpeTokenizer::Pair merge_of(const Json& merge, size_t rank) {
  const bool is_pair = merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
  if (is_pair) return merge.get<BpeTokenizer::Pair>();
  const std::string joined = as<std::string>(merge).value_or("");
  const size_t blank = joined.find(' ');
  if (blank == joined.npos) fail("tokenizer.json: merge {} is not two pieces", {rank});
  return {joined.substr(0, blank), joined.substr(blank + 1)};
}

// The piece that a template alone, or in a sequence of components, puts before every text; empty if there is no such template.
std::string first_of(const Json& post_processor) {
  for (const Json& each : member(post_processor, "processors"))
    if (const std::string piece = first_of(each); !piece.empty()) return piece;
  const Json& parts = member(post_processor, "single");
  if (type_of(post_processor) != "TemplateProcessing" || !parts.is_array() || parts.size() != 2) return "";
  return member(parts[1], "Sequence").is_object() ? text_at(member(parts[0], "SpecialToken"), "id") : "";
}

// The division of a text into words: by a ByteLevel component alone, or by a pattern and then ByteLevel. The pattern smollm is Digits.
void read_pre_tokenizer(const Json& component, BpeOptions& options) {
  constexpr const char* supported = "supported for BPE are ByteLevel, and Split by a known pattern or Digits followed by ByteLevel";
  const bool sequence = type_of(component) == "Sequence";
  const Json parts = sequence ? member(component, "pretokenizers") : Json::array({component});
  expect(parts.is_array() && (parts.size() == 1 || parts.size() == 2), "pre_tokenizer", type_of(component), supported);
  const Json &split = parts.front(), &last = parts.back();
  expect(type_of(last) == "ByteLevel", "pre_tokenizer", type_of(last), supported);
  options.add_prefix_space = value_or(last, "add_prefix_space", true);
  if (parts.size() == 1) {
    expect(value_or(last, "use_regex", true), "pre_tokenizer", "ByteLevel with use_regex: false", supported);
    return;
  }
  if (type_of(split) == "Digits") {
    expect(value_or(split, "individual_digits", false), "pre_tokenizer", "Digits without individual_digits", supported);
    expect(value_or(last, "use_regex", true), "pre_tokenizer", "ByteLevel with use_regex: false after Digits", supported);
    expect(!options.add_prefix_space, "pre_tokenizer", "ByteLevel with add_prefix_space after Digits", supported);
    options.pattern = &split_pattern_of_name("smollm");
    return;
  }
  expect(type_of(split) == "Split", "pre_tokenizer", type_of(split), supported);
  expect(!value_or(last, "use_regex", true), "pre_tokenizer", "ByteLevel with use_regex after Split", supported);
  const std::string behavior = text_at(split, "behavior"), regex = text_at(member(split, "pattern"), "Regex");
  expect(behavior == "Isolated" && !value_or(split, "invert", false), "pre_tokenizer", "Split with behavior " + behavior,
      "supported is Isolated");
  expect(!regex.empty(), "pre_tokenizer", "Split without a regular expression", supported);
  options.pattern = &split_pattern_of_regex(regex);
  // The space is put before every word then, which no known tokenizer does.
  expect(!options.add_prefix_space, "pre_tokenizer", "ByteLevel with add_prefix_space after Split", supported);
}

std::shared_ptr<Tokenizer> read_bpe(const Json& root, Vocabulary vocabulary, std::vector<AddedToken> added, const Marks& marks) {
  const Json &model = member(root, "model"), &before = member(root, "normalizer"), &dropout = member(model, "dropout");
  BpeOptions options;
  for (const char* suffix : {"continuing_subword_prefix", "end_of_word_suffix"})
    expect(text_at(model, suffix).empty(), "model", std::string("BPE with ") + suffix, "supported is byte-level BPE");
  expect(!value_or(model, "byte_fallback", false), "model", "BPE with byte_fallback", "supported is byte-level BPE");
  expect(dropout.is_null() || dropout == 0.0, "model", "BPE with dropout", "supported is BPE without");
  read_pre_tokenizer(member(root, "pre_tokenizer"), options);
  const std::string normalizer = type_of(before);
  const bool nothing = before.is_null() || (normalizer == "Sequence" && member(before, "normalizers").empty());
  expect(nothing || normalizer == "NFC", "normalizer", normalizer, "supported for BPE are NFC and null");
  const std::string decoder = type_of(member(root, "decoder"));
  expect(decoder.empty() || decoder == "ByteLevel", "decoder", decoder, "supported for BPE is ByteLevel");
  options.compose = normalizer == "NFC";
  options.ignore_merges = value_or(model, "ignore_merges", false);
  options.unknown = text_at(model, "unk_token");
  expect(options.unknown.empty() || !value_or(model, "fuse_unk", false), "model", "BPE with fuse_unk", "supported is BPE without");
  options.post_processor = member(root, "post_processor");
  options.first = first_of(options.post_processor);
  const std::string first = add_marks(marks, vocabulary, added);
  if (!first.empty() && first != options.first) {
    options.first = first;
    options.post_processor = nullptr;  // a template takes its place
  }
  std::vector<BpeTokenizer::Pair> merges;
  for (const Json& merge : member(model, "merges")) merges.push_back(merge_of(merge, merges.size()));
  return std::make_shared<BpeTokenizer>(std::move(vocabulary), merges, std::move(added), std::move(options));
}

std::shared_ptr<Tokenizer> read_wordpiece(const Json& root, Vocabulary vocabulary, std::vector<AddedToken> added) {
  const Json &model = member(root, "model"), &normalizer = member(root, "normalizer"), &after = member(root, "decoder");
  const std::string pre_tokenizer = type_of(member(root, "pre_tokenizer")), decoder = type_of(after);
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
  options.cleanup = value_or(after, "cleanup", true);
  options.post_processor = member(root, "post_processor");
  expect(text_at(after, "prefix", options.prefix) == options.prefix, "decoder", "WordPiece with another prefix than its model",
      "supported is the same");
  return std::make_shared<WordPieceTokenizer>(std::move(vocabulary), std::move(added), std::move(options));
}

std::shared_ptr<Tokenizer> read_word(const Json& root, Vocabulary vocabulary, std::vector<AddedToken> added) {
  const Json& normalizer = member(root, "normalizer");
  const std::string pre_tokenizer = type_of(member(root, "pre_tokenizer"));
  expect(normalizer.is_null(), "normalizer", type_of(normalizer), "supported for WordLevel is null");
  expect(pre_tokenizer == "WhitespaceSplit", "pre_tokenizer", pre_tokenizer, "supported for WordLevel is WhitespaceSplit");
  return std::make_shared<WordTokenizer>(std::move(vocabulary), std::move(added), text_at(member(root, "model"), "unk_token", "<unk>"));
}

// Hugging Face's format.
std::shared_ptr<Tokenizer> read_hugging_face(const Json& root, const Additions& additions) {
  const Json& model = member(root, "model");
  const std::string type = text_at(model, "type", member(model, "merges").is_null() ? "" : "BPE");
  const bool is_known = type == "BPE" || type == "WordPiece" || type == "WordLevel";
  expect(is_known, "model", type, "supported are BPE, WordPiece and WordLevel");
  if (!member(model, "vocab").is_object()) fail("tokenizer.json: the model has no vocabulary of pieces and ids");
  Vocabulary vocabulary = Vocabulary::of_json(member(model, "vocab"));
  std::vector<AddedToken> added = added_tokens_of(root);
  int64_t next = vocabulary.size();
  for (const AddedToken& token : added) next = std::max(next, token.id + 1);
  for (const std::string& piece : additions.pieces) added.push_back({.id = next++, .content = piece});
  if (type == "BPE") return read_bpe(root, std::move(vocabulary), std::move(added), additions.marks);
  if (type == "WordPiece") return read_wordpiece(root, std::move(vocabulary), std::move(added));
  return read_word(root, std::move(vocabulary), std::move(added));
}

std::shared_ptr<Tokenizer> read_model(const Json& root, const std::string& name, const Additions& additions) {
  if (member(root, "model").is_object()) return read_hugging_face(root, additions);
  if (name.empty()) fail("tokenizer: the JSON has neither a \"model\", as Hugging Face's have, nor a text \"name\"");
  if (name != "byte" && name != "char") fail("tokenizer: unknown name {}, known are byte, char and eos", {one_line(name)});
  std::string end = text_at(root, "end");
  for (const std::string& piece : additions.pieces) {
    if (name == "byte" || !end.empty()) fail("{} tokenizer: no piece can be added to its vocabulary", {name});
    end = piece;
  }
  if (name == "byte") return std::make_shared<ByteTokenizer>();
  const std::optional<std::string> characters = as<std::string>(member(root, "characters"));
  if (!characters) fail("tokenizer: the JSON has no text \"characters\"");
  return std::make_shared<CharTokenizer>(*characters, end);
}

std::shared_ptr<Tokenizer> read(const Json& root, const Additions& additions) {
  const std::string name = as<std::string>(member(root, "name")).value_or("");
  if (name != "eos") return read_model(root, name, additions);
  const Eos after = choice_of<Eos>("tokenizer: behind", text_at(root, "behind"));
  std::shared_ptr<Tokenizer> tokenizer = read(member(root, "tokenizer"), additions);
  tokenizer->set_eos(after, text_at(root, "piece"));
  return tokenizer;
}

}  // namespace

std::shared_ptr<const Tokenizer> tokenizer_from_json(std::string_view json) { return read(parse_json(json, "tokenizer"), {}); }

std::shared_ptr<const Tokenizer> with_additions(const Tokenizer& tokenizer, const Additions& additions) {
  for (const std::string& piece : additions.pieces)
    if (const int64_t id = tokenizer.find(piece); id >= 0)
      fail("special piece '{}': the vocabulary has it already, as {}", {one_line(piece), id});
  const std::shared_ptr<Tokenizer> other = read(tokenizer.json(), additions);
  if (additions.eos != Eos::none) other->set_eos(additions.eos, additions.eos_piece);
  return other;
}

}  // namespace ricci
