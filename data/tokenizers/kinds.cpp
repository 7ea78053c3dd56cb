#include "data/tokenizers/kinds.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/files/file.h"
#include "core/json/value.h"
#include "data/text/utf8.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/words/wordpiece_tokenizer.h"

namespace ricci {

namespace {

std::shared_ptr<const Tokenizer> train_bytes(const TextSource&, const TrainingOptions&) { return std::make_shared<ByteTokenizer>(); }

std::shared_ptr<const Tokenizer> train_characters(const TextSource& text, const TrainingOptions&) {
  return std::make_shared<CharTokenizer>(CharTokenizer::of_text(text));
}

constexpr TokenizerKind kKinds[] = {
    {"char", "a Unicode character", false, false, "", train_characters},
    {"byte", "a byte", false, false, "", train_bytes},
    {"word", "what white space divides; rare words are <unk>", true, false, "vocab min-count special", train_words},
    {"bpe", "a frequent sequence of bytes inside a word, as GPT-2's", true, true, "vocab min-count special split", train_bpe},
    {"wordpiece", "a frequent beginning or continuation of a word, as BERT's", true, true, "vocab min-count special alphabet lowercase",
        train_wordpiece},
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
    const TokenizerKind& kind, const TextSource& text, TrainingOptions options, const EosOptions& eos) {
  if (kind.needs_size && options.vocab == 0)
    fail("{} tokenizer: the size of the vocabulary that is to be trained is not given", {kind.name});
  if (eos.after != Eos::none && !kind.has_pieces)
    fail("{} tokenizer: its vocabulary has no place for '{}'", {kind.name, one_line(eos.piece)});
  if (eos.after != Eos::none) options.special.push_back(eos.piece);
  options.lines = eos.after == Eos::line;
  return with_eos(kind.train(text, options), eos.after, eos.piece);
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

std::shared_ptr<const Tokenizer> open_pair(const std::string& merges, const std::string& vocabulary) {
  Vocabulary pieces = naming(vocabulary, [&] { return read_vocabulary(vocabulary); });
  const std::vector<BpeTokenizer::Pair> pairs = naming(merges, [&] { return read_merges(merges); });
  return naming(merges, [&] { return std::make_shared<BpeTokenizer>(std::move(pieces), pairs, std::vector<AddedToken>(), BpeOptions()); });
}

std::shared_ptr<const Tokenizer> open_vocab_txt(const std::string& path, const OpenOptions& options) {
  const std::string text = read_text(path, kMaxTokenizer);
  check_utf8("vocabulary", text, 0);
  std::vector<std::string> pieces;
  for (const std::string_view line : lines_of(text)) pieces.emplace_back(line);
  Vocabulary vocabulary(pieces);
  WordPieceOptions wordpiece;
  wordpiece.text.lowercase = wordpiece.text.strip_accents = options.lowercase;
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

// The file in a folder that describes its tokenizer.
std::string file_in(const std::string& folder) {
  for (const char* name : {"tokenizer.json", "vocab.bpe", "merges.txt", kVocabTxt})
    if (const std::string path = fs::path(folder) / name; is_file(path)) return path;
  fail("{}: there is no tokenizer.json, vocab.bpe, merges.txt or vocab.txt in this folder", {folder});
}

}  // namespace

bool names_tokenizer_file(const std::string& text) {
  if (text.find('/') != text.npos) return true;
  for (const char* end : {".json", ".bpe", ".txt"})
    if (text.ends_with(end)) return true;
  return is_there(text);
}

std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& path, const OpenOptions& options) {
  if (is_folder(path)) return open_tokenizer(file_in(path), options);
  if (path.ends_with(kVocabTxt)) return naming(path, [&] { return open_vocab_txt(path, options); });
  if (options.lowercase) fail("{}: lower case is for a vocab.txt; other files define themselves what becomes of a text", {path});
  if (auto pair = open_one_of_pair(path)) return pair;
  if (path.ends_with(".txt") || path.ends_with(".bpe"))
    fail("{}: not a tokenizer file; these are tokenizer.json, vocab.bpe, *merges.txt and *vocab.txt", {path});
  return naming(path, [&] { return tokenizer_from_json(read_text(path, kMaxTokenizer)); });
}

}  // namespace ricci
