#include "data/tokenizers/kinds.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/files/file.h"
#include "core/json/file.h"
#include "data/text/utf8.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/words/wordpiece_tokenizer.h"

namespace ricci {

namespace {

std::shared_ptr<const Tokenizer> train_bytes(const Texts&, const TrainingOptions&) { return std::make_shared<ByteTokenizer>(); }

std::shared_ptr<const Tokenizer> train_characters(const Texts& texts, const TrainingOptions&) {
  return std::make_shared<CharTokenizer>(CharTokenizer::of_text(texts));
}

constexpr TokenizerKind kKinds[] = {
    {"char", true, false, "", train_characters},
    {"byte", false, false, "", train_bytes},
    {"word", true, false, "vocab min-count special", train_words},
    {"bpe", true, true, "vocab min-count special split", train_bpe},
};

}  // namespace

std::span<const TokenizerKind> tokenizer_kinds() { return kKinds; }

std::string list_of_tokenizers() {
  std::string list;
  for (const TokenizerKind& kind : kKinds) list += (list.empty() ? "" : ", ") + std::string(kind.name);
  return list;
}

const TokenizerKind* find_tokenizer_kind(std::string_view name) {
  for (const TokenizerKind& kind : kKinds)
    if (kind.name == name) return &kind;
  return nullptr;
}

bool reads_option(const TokenizerKind& kind, std::string_view option) {
  return (" " + std::string(kind.options) + " ").find(" " + std::string(option) + " ") != std::string::npos;
}

std::string list_of_readers(std::string_view option) {
  std::string list;
  for (const TokenizerKind& kind : kKinds)
    if (reads_option(kind, option)) list += (list.empty() ? "" : ", ") + std::string(kind.name);
  return list;
}

std::shared_ptr<const Tokenizer> train_tokenizer(
    const TokenizerKind& kind, const Texts& texts, TrainingOptions options, const EosOptions& eos) {
  if (kind.needs_size && options.vocab == 0)
    fail("{} tokenizer: the size of the vocabulary that is to be trained is not given", {kind.name});
  const std::string piece = eos.piece.empty() ? kEos : eos.piece;
  if (eos.after != Eos::none) options.special.push_back(piece);
  options.lines = eos.after == Eos::line;
  return with_eos(kind.train(texts, options), eos.after, piece);
}

namespace {

namespace fs = std::filesystem;

// Names under which merges and their vocabulary are side by side; what comes before them, as in gpt2-merges.txt, is the same.
constexpr std::pair<const char*, const char*> kPairs[] = {
    {"vocab.bpe", "encoder.json"}, {"merges.txt", "vocab.json"}, {"vocab.bpe", "vocab.json"}, {"merges.txt", "encoder.json"}};
constexpr const char* kVocabTxt = "vocab.txt";

// The text in lines; a last line without a line end counts, \r before a line end does not.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    begin = end + 1;
  }
  return lines;
}

std::vector<BpeTokenizer::Pair> read_merges(const std::string& path) {
  const std::string text = read_text(path, kMaxTokenizer);
  std::vector<BpeTokenizer::Pair> merges;
  int64_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const size_t blank = line.find(' ');
    if (blank == line.npos || blank == 0 || blank + 1 == line.size() || line.find(' ', blank + 1) != line.npos)
      fail("line {}: expected two pieces with a blank between them, got '{}'", {number, one_line(line)});
    merges.emplace_back(line.substr(0, blank), line.substr(blank + 1));
  }
  return merges;
}

Vocabulary read_vocabulary(const std::string& path) {
  const JsonValue root = parse_json(read_text(path, kMaxTokenizer), "vocabulary");
  if (!root.is_object() || root.keys().empty()) fail("vocabulary: expected an object of pieces and their ids");
  return Vocabulary::of_json(root);
}

// read(), with the path before its error.
template <class Read> auto naming(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    const std::string message = error.what();
    if (message.find(path) != message.npos) throw;
    fail("{}: {}", {path, message});
  }
}

// ---- Files of transformers next to a vocabulary, which say how a text is divided and which tokens are added

// The file next to vocab.json or vocab.txt. Next to gpt2-vocab.json, which can be one of several, no file counts.
JsonFile file_next_to(const fs::path& vocabulary, const char* name) {
  const bool has_prefix = vocabulary.stem() != "vocab" && vocabulary.stem() != "encoder";
  return JsonFile::if_there(has_prefix ? "" : vocabulary.parent_path() / name);
}

struct SideFiles {
  explicit SideFiles(const fs::path& vocabulary)
      : config(file_next_to(vocabulary, "config.json")),
        tokenizer(file_next_to(vocabulary, "tokenizer_config.json")),
        names(file_next_to(vocabulary, "special_tokens_map.json")),
        ids(file_next_to(vocabulary, "added_tokens.json")) {}
  // special_tokens_map.json and added_tokens.json are older than added_tokens_decoder, next to which they do not count.
  bool exist() const { return config.is_there() || tokenizer.is_there() || names.is_there() || ids.is_there(); }
  bool has_decoder() const { return tokenizer.value("added_tokens_decoder").is_object(); }
  const JsonFile& with(const char* key) const { return !has_decoder() && !names.value(key).is_null() ? names : tokenizer; }
  bool have(const char* key) const {
    const std::vector<std::string>& keys = with(key).object().keys();
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  }

  JsonFile config, tokenizer, names, ids;
};

// True for pairs of Qwen2 and Qwen3, false for GPT-2's, which they are if no file names a class, nor a model_type. Error: another kind.
// About other classes for qwen2 the versions of transformers differ.
bool is_qwen2(const SideFiles& files) {
  const std::string type = files.config.text("model_type").value_or("gpt2");
  const JsonFile& file = files.tokenizer.text("tokenizer_class") ? files.tokenizer : files.config;
  const char* const key = file.text("tokenizer_class") ? "tokenizer_class" : "model_type";
  std::string name = file.text(key).value_or(type);
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  const bool qwen2 = name == "Qwen2Tokenizer" || name == "qwen2" || name == "qwen3";
  const bool gpt2 = name == "GPT2Tokenizer" || name == "CodeGenTokenizer" || name == "gpt2";
  if (!qwen2 && (!gpt2 || type == "qwen2"))
    fail("{}: {}: {}: merges with a vocabulary are read for GPT2Tokenizer, CodeGenTokenizer and Qwen2Tokenizer only; "
         "save_pretrained of transformers writes a tokenizer.json",
        {file.path(), key, one_line(name)});
  return qwen2;
}

// A token as these files write it under a key: a text, which is special, or an object. It has no id yet.
AddedToken token_of(const JsonValue& value, const JsonFile& file, const std::string& key) {
  if (value.is_text()) return {.id = -1, .content = value.text()};
  const auto flag = [&](const char* name, bool otherwise) {
    return value.member<bool>(name, file.path() + ": " + key + ": ", ": expected ").value_or(otherwise);
  };
  if (!value["content"].is_text())
    fail("{}: {}: expected a text, or an object with a text \"content\", got {}", {file.path(), key, one_line(value.to_json())});
  const bool special = flag("special", false);
  return {-1, value["content"].text(), flag("single_word", false), flag("lstrip", false), flag("rstrip", false),
      flag("normalized", !special), special};
}

bool contains(const std::vector<AddedToken>& tokens, const std::string& content) {
  return std::any_of(tokens.begin(), tokens.end(), [&](const AddedToken& token) { return token.content == content; });
}

constexpr const char* kGpt2End = "<|endoftext|>";  // what the classes name if no file does

// The tokens that have a name, in the order of transformers.
std::vector<AddedToken> special_tokens(const SideFiles& files, const Vocabulary& pieces, bool qwen2) {
  std::vector<AddedToken> tokens;
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token",
           "additional_special_tokens", "extra_special_tokens"}) {
    const JsonFile& file = files.with(key);
    const JsonValue& value = file.value(key);
    const bool are_several = std::string_view(key).ends_with("_tokens") && !value.is_text();
    for (const JsonValue& each : are_several ? value.items() : JsonValue::List{value})
      if (!each.is_null()) tokens.push_back(token_of(each, file, key));
  }
  for (const char* key : {"eos_token", "unk_token", qwen2 ? "pad_token" : "bos_token"})
    if (files.exist() && !files.have(key) && pieces.find(kGpt2End) >= 0) tokens.push_back({.id = -1, .content = kGpt2End});
  for (AddedToken& token : tokens) token.special = true;
  return tokens;
}

// The tokens whose ids a file names, and the special ones: they have the ids of the vocabulary, or follow it.
std::vector<AddedToken> added_to_pair(const SideFiles& files, const Vocabulary& pieces, bool qwen2) {
  const JsonFile& file = files.has_decoder() ? files.tokenizer : files.ids;
  const JsonValue& all = files.has_decoder() ? file.value("added_tokens_decoder") : file.object();
  const std::vector<AddedToken> special = special_tokens(files, pieces, qwen2);
  std::vector<AddedToken> added;
  int64_t next = pieces.size();
  for (size_t i = 0; i < all.keys().size(); ++i) {
    const std::string& key = all.keys()[i];
    const JsonValue& value = all.items()[i];
    AddedToken token{.content = key, .normalized = !contains(special, key), .special = false};
    if (files.has_decoder()) token = token_of(value, file, one_line(key));
    const JsonValue id = files.has_decoder() ? parse_json(key, (file.path() + ": added_tokens_decoder").c_str()) : value;
    if (!id.is_integer()) fail("{}: the id of '{}' is not an integer", {file.path(), one_line(token.content)});
    token.id = id.integer();
    token.special = token.special || contains(special, token.content);
    next = std::max(next, std::min(token.id, kMaxPieces) + 1);
    added.push_back(token);
  }
  for (AddedToken token : special) {
    if (contains(added, token.content)) continue;
    const int64_t known = pieces.find(token.content);
    token.id = known >= 0 ? known : next++;
    added.push_back(token);
  }
  return added;
}

std::shared_ptr<const Tokenizer> open_pair(const std::string& merges, const std::string& vocabulary) {
  Vocabulary pieces = naming(vocabulary, [&] { return read_vocabulary(vocabulary); });
  const std::vector<BpeTokenizer::Pair> pairs = naming(merges, [&] { return read_merges(merges); });
  const SideFiles files(vocabulary);
  const bool qwen2 = is_qwen2(files);
  std::vector<AddedToken> added = added_to_pair(files, pieces, qwen2);
  BpeOptions options{.pattern = &split_pattern_of_name(qwen2 ? "qwen2" : "gpt2"), .compose = qwen2};
  options.add_prefix_space = files.tokenizer.flag("add_prefix_space").value_or(false);
  if (options.add_prefix_space && qwen2) fail("{}: add_prefix_space: true is not supported with Qwen2Tokenizer", {files.tokenizer.path()});
  if (files.tokenizer.flag("add_bos_token").value_or(false)) {
    const JsonFile& file = files.with("bos_token");
    if (const JsonValue& first = file.value("bos_token"); !first.is_null()) options.first = token_of(first, file, "bos_token").content;
    else if (!qwen2) options.first = kGpt2End;
  }
  return naming(merges, [&] { return std::make_shared<BpeTokenizer>(std::move(pieces), pairs, std::move(added), options); });
}

std::shared_ptr<const Tokenizer> open_vocab_txt(const std::string& path, const OpenOptions& options) {
  const std::string text = read_text(path, kMaxTokenizer);
  check_utf8("vocabulary", text, 0);
  std::vector<std::string> pieces;
  for (const std::string_view line : lines_of(text)) pieces.emplace_back(line);
  Vocabulary vocabulary(pieces);
  const JsonFile config = file_next_to(path, "tokenizer_config.json");
  WordPieceOptions wordpiece;
  wordpiece.text.lowercase = options.lowercase || config.flag("do_lower_case").value_or(config.is_there());
  wordpiece.text.strip_accents = config.flag("strip_accents").value_or(wordpiece.text.lowercase);
  wordpiece.text.ideographs = config.flag("tokenize_chinese_chars").value_or(true);
  std::vector<AddedToken> special = bert_special_tokens(vocabulary);
  return std::make_shared<WordPieceTokenizer>(std::move(vocabulary), std::move(special), std::move(wordpiece));
}

// The same path with another end; empty where that is no file.
std::string beside(const std::string& path, std::string_view end, const char* other) {
  const std::string found = path.substr(0, path.size() - end.size()) + other;
  return is_file(found) ? found : "";
}

// The tokenizer of a pair of files, given the path of one of them; null where it has neither name.
std::shared_ptr<const Tokenizer> open_one_of_pair(const std::string& path) {
  std::string missing;
  for (const auto& [merges, vocabulary] : kPairs) {
    if (path.ends_with(merges)) {
      if (const std::string other = beside(path, merges, vocabulary); !other.empty()) return open_pair(path, other);
      missing += (missing.empty() ? "" : " or ") + std::string(vocabulary);
    } else if (path.ends_with(vocabulary)) {
      if (const std::string other = beside(path, vocabulary, merges); !other.empty()) return open_pair(other, path);
      missing += (missing.empty() ? "" : " or ") + std::string(merges);
    }
  }
  if (!missing.empty()) fail("{}: there is no {} beside it", {path, missing});
  return nullptr;
}

}  // namespace

bool names_tokenizer_file(const std::string& text) {
  if (text.find('/') != text.npos) return true;
  for (const char* end : {".json", ".bpe", ".txt"})
    if (text.ends_with(end)) return true;
  return is_there(text);
}

std::string tokenizer_file_in(const std::string& folder) {
  for (const char* name : {"tokenizer.json", "vocab.bpe", "merges.txt", "vocab.json", kVocabTxt})
    if (std::string path = fs::path(folder) / name; is_file(path)) return path;
  return "";
}

std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& path, const OpenOptions& options) {
  if (is_folder(path)) {
    const std::string file = tokenizer_file_in(path);
    if (file.empty()) fail("{}: there is no tokenizer.json, vocab.bpe, merges.txt or vocab.txt in this folder", {path});
    return open_tokenizer(file, options);
  }
  if (path.ends_with(kVocabTxt)) return naming(path, [&] { return open_vocab_txt(path, options); });
  if (options.lowercase) fail("{}: lower case is for a vocab.txt; other files define themselves what becomes of a text", {path});
  if (auto pair = open_one_of_pair(path)) return pair;
  if (path.ends_with(".txt") || path.ends_with(".bpe"))
    fail("{}: not a tokenizer file; these are tokenizer.json, vocab.bpe, *merges.txt and *vocab.txt", {path});
  return naming(path, [&] { return tokenizer_from_json(read_text(path, kMaxTokenizer)); });
}

}  // namespace ricci
