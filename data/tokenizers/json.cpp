// Reads and writes tokenizer.json: Hugging Face's format, and ricci's own for tokenizers that Hugging Face's cannot describe. Written
// members keep their order, on which the hash in shards and checkpoints depends.
#include <algorithm>
#include <tuple>

#include "core/error.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/words.h"

namespace ricci {

// ---- Reading
namespace {

// A member, or a default value. Error: the member has the wrong type.
template <class T> T value_or(const Json& object, const char* key, const T& otherwise) {
  return read_member<T>(object, key, "tokenizer").value_or(otherwise);
}
std::string get_text(const Json& object, const char* key, const std::string& otherwise = "") { return value_or(object, key, otherwise); }

// The type of a component such as the pre_tokenizer; empty for null.
std::string get_type(const Json& component) { return get_text(component, "type"); }

// The parts of a Sequence under this key, or the single component; empty for null.
Json parts_of(const Json& component, const char* key) {
  if (component.is_null()) return Json::array();
  return get_type(component) == "Sequence" ? member(component, key) : Json::array({component});
}

// Error: a component is not supported.
void expect(bool holds, const char* part, const std::string& found, const char* supported) {
  if (!holds) fail("tokenizer.json: the {} '{}' is not supported; {}", {part, found.empty() ? "null" : one_line(found), supported});
}

// Marks added tokens as bos and eos, and returns the token of Marks::first. Marked tokens of the vocabulary become added tokens.
std::string add_marks(const Marks& marks, const Vocabulary& vocabulary, std::vector<AddedToken>& added) {
  const auto find_token = [&](int64_t id) -> AddedToken& {
    const auto found = std::find_if(added.begin(), added.end(), [&](const AddedToken& token) { return token.id == id; });
    if (found != added.end()) return *found;
    if (id < 0 || id >= vocabulary.size() || !vocabulary.has(id))
      fail("bpe tokenizer: the id {}, which marks the start or end of texts, has no token", {id});
    return added.emplace_back(AddedToken{.id = id, .content = std::string(vocabulary.piece(id))});
  };
  if (marks.begin >= 0) find_token(marks.begin).bos = true;
  for (const int64_t id : marks.ends) find_token(id).eos = true;
  return marks.first >= 0 ? find_token(marks.first).content : "";
}

// Added tokens keep the ids of the file. Hugging Face's tokenizers renumber tokens that the vocabulary lacks, so ids differ if the
// vocabulary has gaps.
std::vector<AddedToken> read_added_tokens(const Json& root) {
  std::vector<AddedToken> tokens;
  for (const Json& each : member(root, "added_tokens"))
    tokens.push_back({.id = value_or<int64_t>(each, "id", -1),
        .content = get_text(each, "content"),
        .single_word = value_or(each, "single_word", false),
        .lstrip = value_or(each, "lstrip", false),
        .rstrip = value_or(each, "rstrip", false),
        .normalized = value_or(each, "normalized", true),
        .special = value_or(each, "special", false),
        .bos = value_or(each, "bos", false),
        .eos = value_or(each, "eos", false)});
  return tokens;
}

// Reads a merge: "a b" or ["a", "b"].
BpeTokenizer::Pair read_merge(const Json& merge, size_t rank) {
  const bool is_pair = merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
  if (is_pair) return merge.get<BpeTokenizer::Pair>();
  const std::string joined = as<std::string>(merge).value_or("");
  const size_t blank = joined.find(' ');
  if (blank == joined.npos) fail("tokenizer.json: merge {} does not consist of two tokens", {rank});
  return {joined.substr(0, blank), joined.substr(blank + 1)};
}

// Returns the token that a template puts before every text, or empty. The template can be part of a sequence of components. Ignores
// tokens after a text: the run chooses the end of documents.
std::string find_first(const Json& post_processor) {
  for (const Json& each : member(post_processor, "processors"))
    if (const std::string piece = find_first(each); !piece.empty()) return piece;
  const Json& parts = member(post_processor, "single");
  if (get_type(post_processor) != "TemplateProcessing" || !parts.is_array() || parts.size() < 2) return "";
  return member(parts[1], "Sequence").is_object() ? get_text(member(parts[0], "SpecialToken"), "id") : "";
}

// Reads byte-level BPE, with or without NFC. The pre_tokenizer is ByteLevel (GPT-2), Split with a pattern and ByteLevel, or Digits and
// ByteLevel (SmolLM).
void read_byte_level(const Json& root, BpeOptions& options) {
  constexpr const char* supported = "supported for BPE are ByteLevel, and Split by a known pattern or Digits followed by ByteLevel";
  const Json& component = member(root, "pre_tokenizer");
  const Json parts = parts_of(component, "pretokenizers");
  expect(parts.is_array() && (parts.size() == 1 || parts.size() == 2), "pre_tokenizer", get_type(component), supported);
  const Json &split = parts.front(), &last = parts.back();
  expect(get_type(last) == "ByteLevel", "pre_tokenizer", get_type(last), supported);
  for (const Json& each : parts_of(member(root, "normalizer"), "normalizers")) {
    expect(get_type(each) == "NFC", "normalizer", get_type(each), "supported for BPE are NFC and null");
    options.compose = true;
  }
  const std::string decoder = get_type(member(root, "decoder"));
  expect(decoder.empty() || decoder == "ByteLevel", "decoder", decoder, "supported for BPE is ByteLevel");
  options.add_prefix_space = value_or(last, "add_prefix_space", true);
  if (parts.size() == 1) {
    expect(value_or(last, "use_regex", true), "pre_tokenizer", "ByteLevel with use_regex: false", supported);
    return;
  }
  if (get_type(split) == "Digits") {
    expect(value_or(split, "individual_digits", false), "pre_tokenizer", "Digits without individual_digits", supported);
    expect(value_or(last, "use_regex", true), "pre_tokenizer", "ByteLevel with use_regex: false after Digits", supported);
    expect(!options.add_prefix_space, "pre_tokenizer", "ByteLevel with add_prefix_space after Digits", supported);
    options.pattern = &find_pattern("smollm");
    return;
  }
  expect(get_type(split) == "Split", "pre_tokenizer", get_type(split), supported);
  expect(!value_or(last, "use_regex", true), "pre_tokenizer", "ByteLevel with use_regex after Split", supported);
  const std::string behavior = get_text(split, "behavior"), regex = get_text(member(split, "pattern"), "Regex");
  expect(behavior == "Isolated" && !value_or(split, "invert", false), "pre_tokenizer", "Split with behavior " + behavior,
      "supported is Isolated");
  expect(!regex.empty(), "pre_tokenizer", "Split without a regular expression", supported);
  options.pattern = &find_pattern_by_regex(regex);
  // ByteLevel would put a space before every word. No known tokenizer does that.
  expect(!options.add_prefix_space, "pre_tokenizer", "ByteLevel with add_prefix_space after Split", supported);
}

// The parts of a Sequence under this key as one text.
std::string text_of(const Json& component, const char* key) {
  std::string text;
  for (const Json& part : parts_of(component, key)) text += part.dump();
  return text;
}

// Reads the known forms of tokenizers like Llama 2's.
void read_underscores(const Json& root, BpeOptions& options) {
  const auto metaspace = [](const std::string& scheme) {
    return R"({"type":"Metaspace","replacement":"▁","prepend_scheme":")" + scheme + R"(","split":false})";
  };
  const std::string replace = R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})",
                    prepend = R"({"type":"Prepend","prepend":"▁"})",
                    split = R"({"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious","invert":false})",
                    back = R"({"type":"Replace","pattern":{"String":"▁"},"content":" "}{"type":"ByteFallback"}{"type":"Fuse"})",
                    strip = R"({"type":"Strip","content":" ","start":1,"stop":0})";
  const std::tuple<std::string, std::string, Underscores> forms[] = {{prepend + replace, "", Underscores::prepended},
      {replace, "", Underscores::replaced}, {replace, split, Underscores::replaced}, {"", metaspace("never"), Underscores::never},
      {"", metaspace("first"), Underscores::first}, {"", metaspace("always"), Underscores::always}};
  const Json &before = member(root, "normalizer"), &divider = member(root, "pre_tokenizer"), &after = member(root, "decoder");
  const std::string normalizer = text_of(before, "normalizers"), words = text_of(divider, "pretokenizers"),
                    decoder = text_of(after, "decoders");
  for (const auto& [known_normalizer, known_words, underscores] : forms)
    if (normalizer == known_normalizer && words == known_words) options.underscores = underscores;
  expect(options.underscores != Underscores::none, "model", "BPE with byte_fallback",
      "supported with it are the normalizer and pre_tokenizer of Llama 2 and Gemma, and Metaspace with split: false");
  expect(decoder == back || decoder == back + strip, "decoder", get_type(after),
      "supported with byte_fallback are Replace, ByteFallback, Fuse, and Strip after them");
  options.drops_blank = decoder != back;
  options.components = {{"normalizer", before}, {"pre_tokenizer", divider}, {"decoder", after}};
}

std::shared_ptr<Tokenizer> read_bpe(const Json& root, Vocabulary vocabulary, std::vector<AddedToken> added, const Marks& marks) {
  const Json &model = member(root, "model"), &dropout = member(model, "dropout");
  BpeOptions options;
  for (const char* suffix : {"continuing_subword_prefix", "end_of_word_suffix"})
    expect(get_text(model, suffix).empty(), "model", std::string("BPE with ") + suffix, "supported is byte-level BPE");
  expect(dropout.is_null() || dropout == 0.0, "model", "BPE with dropout", "supported is BPE without dropout");
  const bool has_fallback = value_or(model, "byte_fallback", false);
  if (has_fallback) read_underscores(root, options);
  else read_byte_level(root, options);
  options.ignore_merges = value_or(model, "ignore_merges", false);
  expect(!has_fallback || !options.ignore_merges, "model", "BPE with byte_fallback and ignore_merges",
      "supported is BPE with only one of them");
  options.unknown = get_text(model, "unk_token");
  expect(has_fallback || options.unknown.empty() || !value_or(model, "fuse_unk", false), "model", "BPE with fuse_unk",
      "supported is BPE without it");
  options.post_processor = member(root, "post_processor");
  options.first = find_first(options.post_processor);
  const std::string first = add_marks(marks, vocabulary, added);
  if (!first.empty() && first != options.first) {
    options.first = first;
    options.post_processor = nullptr;  // a new template is written
  }
  std::vector<BpeTokenizer::Pair> merges;
  for (const Json& merge : member(model, "merges")) merges.push_back(read_merge(merge, merges.size()));
  return std::make_shared<BpeTokenizer>(std::move(vocabulary), merges, std::move(added), std::move(options));
}

std::shared_ptr<Tokenizer> read_wordpiece(const Json& root, Vocabulary vocabulary, std::vector<AddedToken> added) {
  const Json &model = member(root, "model"), &normalizer = member(root, "normalizer"), &after = member(root, "decoder");
  const std::string pre_tokenizer = get_type(member(root, "pre_tokenizer")), decoder = get_type(after);
  expect(get_type(normalizer) == "BertNormalizer", "normalizer", get_type(normalizer), "supported for WordPiece is BertNormalizer");
  expect(pre_tokenizer == "BertPreTokenizer", "pre_tokenizer", pre_tokenizer, "supported for WordPiece is BertPreTokenizer");
  expect(decoder.empty() || decoder == "WordPiece", "decoder", decoder, "supported for WordPiece is WordPiece");
  WordPieceOptions options;
  options.text.lowercase = value_or(normalizer, "lowercase", true);
  options.text.clean = value_or(normalizer, "clean_text", true);
  options.text.ideographs = value_or(normalizer, "handle_chinese_chars", true);
  options.text.strip_accents = value_or(normalizer, "strip_accents", options.text.lowercase);
  options.unknown = get_text(model, "unk_token", options.unknown);
  options.prefix = get_text(model, "continuing_subword_prefix", options.prefix);
  options.longest_word = value_or(model, "max_input_chars_per_word", options.longest_word);
  options.cleanup = value_or(after, "cleanup", true);
  options.post_processor = member(root, "post_processor");
  expect(get_text(after, "prefix", options.prefix) == options.prefix, "decoder", "WordPiece with a prefix that differs from its model's",
      "supported is the same prefix");
  return std::make_shared<WordPieceTokenizer>(std::move(vocabulary), std::move(added), std::move(options));
}

std::shared_ptr<Tokenizer> read_word(const Json& root, Vocabulary vocabulary, std::vector<AddedToken> added) {
  const Json& normalizer = member(root, "normalizer");
  const std::string pre_tokenizer = get_type(member(root, "pre_tokenizer"));
  expect(normalizer.is_null(), "normalizer", get_type(normalizer), "supported for WordLevel is null");
  expect(pre_tokenizer == "WhitespaceSplit", "pre_tokenizer", pre_tokenizer, "supported for WordLevel is WhitespaceSplit");
  return std::make_shared<WordTokenizer>(std::move(vocabulary), std::move(added), get_text(member(root, "model"), "unk_token", "<unk>"));
}

// Reads Hugging Face's format.
std::shared_ptr<Tokenizer> read_hugging_face(const Json& root, const Additions& additions) {
  const Json& model = member(root, "model");
  const std::string type = get_text(model, "type", member(model, "merges").is_null() ? "" : "BPE");
  const bool is_known = type == "BPE" || type == "WordPiece" || type == "WordLevel";
  expect(is_known, "model", type, "supported are BPE, WordPiece and WordLevel");
  if (!member(model, "vocab").is_object()) fail("tokenizer.json: the model has no vocabulary of tokens and ids");
  Vocabulary vocabulary = Vocabulary::of_json(member(model, "vocab"));
  std::vector<AddedToken> added = read_added_tokens(root);
  int64_t next = vocabulary.size();
  for (const AddedToken& token : added) next = std::max(next, token.id + 1);
  for (const std::string& piece : additions.pieces) added.push_back({.id = next++, .content = piece});
  if (type == "BPE") return read_bpe(root, std::move(vocabulary), std::move(added), additions.marks);
  if (type == "WordPiece") return read_wordpiece(root, std::move(vocabulary), std::move(added));
  return read_word(root, std::move(vocabulary), std::move(added));
}

std::shared_ptr<Tokenizer> read_model(const Json& root, const std::string& name, const Additions& additions) {
  if (member(root, "model").is_object()) return read_hugging_face(root, additions);
  if (name.empty()) fail("tokenizer: the JSON has neither Hugging Face's \"model\" nor a string \"name\"");
  if (name != "byte" && name != "char") fail("tokenizer: unknown name {}, expected byte, char or eos", {one_line(name)});
  std::string end = get_text(root, "end");
  for (const std::string& piece : additions.pieces) {
    if (name == "byte" || !end.empty()) fail("{} tokenizer: no token can be added to its vocabulary", {name});
    end = piece;
  }
  if (name == "byte") return std::make_shared<ByteTokenizer>();
  const std::optional<std::string> characters = as<std::string>(member(root, "characters"));
  if (!characters) fail("tokenizer: the JSON has no string \"characters\"");
  return std::make_shared<CharTokenizer>(*characters, end);
}

std::shared_ptr<Tokenizer> read(const Json& root, const Additions& additions) {
  const std::string name = as<std::string>(member(root, "name")).value_or("");
  if (name != "eos") return read_model(root, name, additions);
  const Eos after = choice_of<Eos>("tokenizer: behind", get_text(root, "behind"));
  std::shared_ptr<Tokenizer> tokenizer = read(member(root, "tokenizer"), additions);
  tokenizer->set_eos(after, get_text(root, "piece"));
  return tokenizer;
}

}  // namespace

std::shared_ptr<const Tokenizer> tokenizer_from_json(std::string_view json) { return read(parse_json(json, "tokenizer"), {}); }

std::shared_ptr<const Tokenizer> with_additions(const Tokenizer& tokenizer, const Additions& additions) {
  for (const std::string& piece : additions.pieces)
    if (const int64_t id = tokenizer.find(piece); id >= 0)
      fail("special token '{}' is already in the vocabulary, as id {}", {one_line(piece), id});
  const std::shared_ptr<Tokenizer> other = read(tokenizer.json(), additions);
  if (additions.eos != Eos::none) other->set_eos(additions.eos, additions.eos_piece);
  return other;
}

// ---- Writing
namespace {

Json write_token(const AddedToken& token) {
  Json json = {{"id", token.id}, {"content", token.content}, {"single_word", token.single_word}, {"lstrip", token.lstrip},
      {"rstrip", token.rstrip}, {"normalized", token.normalized}, {"special", token.special}};
  if (token.bos) json["bos"] = true;
  if (token.eos) json["eos"] = true;
  return json;
}

// Writes the tokens that the model knows.
Json write_vocabulary(const PieceTokenizer& tokenizer) {
  Json json = Json::object();
  auto& members = json.get_ref<Json::object_t&>();
  members.reserve(static_cast<size_t>(tokenizer.model_size()));
  for (int64_t id = 0; id < tokenizer.model_size(); ++id)  // json[piece] would search all members and take minutes
    if (tokenizer.vocabulary().has(id)) members.emplace_back(std::string(tokenizer.vocabulary().piece(id)), id);
  return json;
}

struct Components {
  Json normalizer, pre_tokenizer, post_processor, decoder, model;
};

Json write_tokenizer(const PieceTokenizer& tokenizer, Components c) {
  Json added = Json::array();
  for (const AddedToken& token : tokenizer.added_tokens()) added.push_back(write_token(token));
  return {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}, {"added_tokens", std::move(added)},
      {"normalizer", std::move(c.normalizer)}, {"pre_tokenizer", std::move(c.pre_tokenizer)},
      {"post_processor", std::move(c.post_processor)}, {"decoder", std::move(c.decoder)}, {"model", std::move(c.model)}};
}

Json byte_level(bool add_prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", add_prefix_space}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

Json make_pre_tokenizer(const BpeOptions& options) {
  if (options.pattern == &split_patterns()[0]) return byte_level(options.add_prefix_space, true);
  const bool is_digits = options.pattern == &find_pattern("smollm");
  const Json digits = {{"type", "Digits"}, {"individual_digits", true}},
             split = {{"type", "Split"}, {"pattern", {{"Regex", options.pattern->regex}}}, {"behavior", "Isolated"}, {"invert", false}};
  return {
      {"type", "Sequence"}, {"pretokenizers", Json::array({is_digits ? digits : split, byte_level(options.add_prefix_space, is_digits)})}};
}

// Makes a template that puts this token before every text.
Json make_template(const std::string& first, int64_t id) {
  const auto part = [](const char* kind, const std::string& name, int type) {
    return Json::object({{kind, {{"id", name}, {"type_id", type}}}});
  };
  const Json a = part("Sequence", "A", 0), b = part("Sequence", "B", 1);
  return {{"type", "TemplateProcessing"}, {"single", Json::array({part("SpecialToken", first, 0), a})},
      {"pair", Json::array({part("SpecialToken", first, 0), a, part("SpecialToken", first, 1), b})},
      {"special_tokens", {{first, {{"id", first}, {"ids", Json::array({id})}, {"tokens", Json::array({first})}}}}}};
}

Json make_merges(const BpeTokenizer& tokenizer) {
  Json merges = Json::array();
  for (const Merges::Merge& merge : tokenizer.merges().all())
    merges.push_back(Json::array({tokenizer.vocabulary().piece(merge.left), tokenizer.vocabulary().piece(merge.right)}));
  return merges;
}

}  // namespace

Json BpeTokenizer::model_json() const {
  Components c;
  if (options_.compose) c.normalizer = {{"type", "NFC"}};
  c.pre_tokenizer = make_pre_tokenizer(options_);
  const bool writes_template = options_.post_processor.is_null() && !options_.first.empty();
  c.post_processor = writes_template ? make_template(options_.first, find(options_.first)) : options_.post_processor;
  c.decoder = byte_level(true, true);
  c.model = {{"type", "BPE"}, {"dropout", nullptr}, {"unk_token", options_.unknown.empty() ? Json() : Json(options_.unknown)},
      {"continuing_subword_prefix", nullptr}, {"end_of_word_suffix", nullptr}, {"fuse_unk", !is_byte_level()},
      {"byte_fallback", !is_byte_level()}, {"ignore_merges", options_.ignore_merges}, {"vocab", write_vocabulary(*this)},
      {"merges", make_merges(*this)}};
  Json json = write_tokenizer(*this, std::move(c));
  if (!is_byte_level()) json.update(options_.components);
  return json;
}

Json WordPieceTokenizer::model_json() const {
  Components c;
  c.normalizer = {{"type", "BertNormalizer"}, {"clean_text", options_.text.clean}, {"handle_chinese_chars", options_.text.ideographs},
      {"strip_accents", options_.text.strip_accents}, {"lowercase", options_.text.lowercase}};
  c.pre_tokenizer = {{"type", "BertPreTokenizer"}};
  c.post_processor = options_.post_processor;
  c.decoder = {{"type", "WordPiece"}, {"prefix", options_.prefix}, {"cleanup", options_.cleanup}};
  c.model = {{"type", "WordPiece"}, {"unk_token", options_.unknown}, {"continuing_subword_prefix", options_.prefix},
      {"max_input_chars_per_word", options_.longest_word}, {"vocab", write_vocabulary(*this)}};
  return write_tokenizer(*this, std::move(c));
}

Json WordTokenizer::model_json() const {
  Components c;
  c.pre_tokenizer = {{"type", "WhitespaceSplit"}};
  c.model = {{"type", "WordLevel"}, {"vocab", write_vocabulary(*this)}, {"unk_token", unknown()}};
  return write_tokenizer(*this, std::move(c));
}

}  // namespace ricci
