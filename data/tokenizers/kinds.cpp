#include "data/tokenizers/kinds.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/files/file.h"
#include "core/json.h"
#include "data/text/utf8.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/words/wordpiece_tokenizer.h"

namespace ricci {

namespace {

using Trained = std::shared_ptr<const Tokenizer>;
constexpr TokenizerKind kKinds[] = {
    {"char", true, false, "",
        [](const Documents& documents, const TrainingOptions&) -> Trained {
          return std::make_shared<CharTokenizer>(CharTokenizer::of_text(documents));
        }},
    {"byte", false, false, "", [](const Documents&, const TrainingOptions&) -> Trained { return std::make_shared<ByteTokenizer>(); }},
    {"word", true, false, "vocab min-count special", train_words},
    {"bpe", true, true, "vocab min-count special split", train_bpe},
};

}  // namespace

std::span<const TokenizerKind> tokenizer_kinds() { return kKinds; }

std::string list_of_tokenizers(std::string_view option) {
  std::string list;
  for (const TokenizerKind& kind : kKinds)
    if (option.empty() || reads_option(kind, option)) list += (list.empty() ? "" : ", ") + std::string(kind.name);
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

std::shared_ptr<const Tokenizer> train_tokenizer(
    const TokenizerKind& kind, const Documents& documents, TrainingOptions options, const EosOptions& eos) {
  if (kind.needs_size && options.vocab == 0)
    fail("{} tokenizer: the size of the vocabulary that is to be trained is not given", {kind.name});
  const std::string piece = eos.piece.empty() ? kEos : eos.piece;
  if (eos.after != Eos::none) options.special.push_back(piece);
  options.lines = eos.after == Eos::line;
  return with_eos(kind.train(documents, options), eos.after, piece);
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

std::vector<BpeTokenizer::Pair> read_merges(std::string_view text) {
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

Vocabulary read_vocabulary(std::string_view text) {
  const Json root = parse_json(text, "vocabulary");
  if (!root.is_object() || root.empty()) fail("vocabulary: expected an object of pieces and their ids");
  return Vocabulary::of_json(root);
}

// A file of transformers next to vocab.json or vocab.txt; empty if it does not exist. Next to gpt2-vocab.json, which can be one of several,
// no file counts.
std::string file_next_to(const fs::path& vocabulary, const char* name) {
  const bool has_prefix = vocabulary.stem() != "vocab" && vocabulary.stem() != "encoder";
  const std::string path = vocabulary.parent_path() / name;
  return !has_prefix && is_there(path) ? path : "";
}

// The object in a file; null without a file.
Json read_if_there(const std::string& path) { return path.empty() ? Json() : read_json(path); }

// Error: files of transformers next to a pair may give it another class than GPT-2's, or more tokens. Then its ids would be wrong.
void check_is_gpt2(const std::string& vocabulary) {
  const auto refuse = [](const std::string& said) {
    fail("{}: merges with a vocabulary are read as GPT-2's only, without other tokens; save_pretrained of transformers writes a "
         "tokenizer.json",
        {said});
  };
  const std::string path = file_next_to(vocabulary, "config.json");
  const Json config = read_if_there(path);
  for (const auto& [key, gpt2] : {std::pair{"model_type", "gpt2"}, {"tokenizer_class", "GPT2Tokenizer"}})
    if (const std::string name = read_member<std::string>(config, key, path).value_or(gpt2);
        name != gpt2 && name != gpt2 + std::string("Fast"))
      refuse(path + ": " + key + ": " + one_line(name));
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"})
    if (const std::string file = file_next_to(vocabulary, name); !file.empty()) refuse(file);
}

std::shared_ptr<const Tokenizer> open_pair(const std::string& merges, const std::string& vocabulary) {
  const std::string merges_text = read_text(merges, kMaxTokenizer), vocabulary_text = read_text(vocabulary, kMaxTokenizer);
  Vocabulary pieces = about(vocabulary, [&] { return read_vocabulary(vocabulary_text); });
  check_is_gpt2(vocabulary);
  return about(merges,
      [&] { return std::make_shared<BpeTokenizer>(std::move(pieces), read_merges(merges_text), std::vector<AddedToken>(), BpeOptions()); });
}

std::shared_ptr<const Tokenizer> read_vocab_txt(const std::string& path, std::string_view text, const OpenOptions& options) {
  check_utf8("vocabulary", text, 0);
  std::vector<std::string> pieces;
  for (const std::string_view line : lines_of(text)) pieces.emplace_back(line);
  Vocabulary vocabulary(pieces);
  const std::string config_path = file_next_to(path, "tokenizer_config.json");
  const Json config = read_if_there(config_path);
  const auto flag = [&](const char* key, bool otherwise) { return read_member<bool>(config, key, config_path).value_or(otherwise); };
  WordPieceOptions wordpiece;
  wordpiece.text.lowercase = options.lowercase || flag("do_lower_case", config.is_object());
  wordpiece.text.strip_accents = flag("strip_accents", wordpiece.text.lowercase);
  wordpiece.text.ideographs = flag("tokenize_chinese_chars", true);
  std::vector<AddedToken> special = bert_special_tokens(vocabulary);
  return std::make_shared<WordPieceTokenizer>(std::move(vocabulary), std::move(special), std::move(wordpiece));
}

// The tokenizer of a pair of files, given the path of one of them; null if it has neither name.
std::shared_ptr<const Tokenizer> open_one_of_pair(const std::string& path) {
  std::string missing;
  for (const auto& [merges, vocabulary] : kPairs) {
    const bool are_merges = path.ends_with(merges);
    if (!are_merges && !path.ends_with(vocabulary)) continue;
    const std::string_view end = are_merges ? merges : vocabulary, other_end = are_merges ? vocabulary : merges;
    const std::string other = path.substr(0, path.size() - end.size()) + std::string(other_end);
    if (is_file(other)) return are_merges ? open_pair(path, other) : open_pair(other, path);
    missing += (missing.empty() ? "" : " or ") + std::string(other_end);
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
  if (options.lowercase && !path.ends_with(kVocabTxt))
    fail("{}: lower case is for a vocab.txt; other files define themselves what becomes of a text", {path});
  if (auto pair = open_one_of_pair(path)) return pair;
  if ((path.ends_with(".txt") || path.ends_with(".bpe")) && !path.ends_with(kVocabTxt))
    fail("{}: not a tokenizer file; these are tokenizer.json, vocab.bpe, *merges.txt and *vocab.txt", {path});
  const std::string text = read_text(path, kMaxTokenizer);
  return about(path, [&] { return path.ends_with(kVocabTxt) ? read_vocab_txt(path, text, options) : tokenizer_from_json(text); });
}

}  // namespace ricci
