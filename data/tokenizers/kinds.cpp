#include "data/tokenizers/kinds.h"

#include <filesystem>
#include <sstream>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/files/file.h"
#include "core/json.h"
#include "data/text/utf8.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/words.h"

namespace ricci {
namespace {

namespace fs = std::filesystem;
constexpr const char* kMerges[][2] = {{"vocab.bpe", "encoder.json"}, {"merges.txt", "vocab.json"}};
constexpr const char* kVocabTxt = "vocab.txt";
// Vocabularies that only transformers can read.
constexpr std::pair<const char*, const char*> kForeign[] = {{".model", "SentencePiece"}, {".tiktoken", "tiktoken"}};

using Trained = std::shared_ptr<const Tokenizer>;
using Sources = const std::vector<Documents>&;
constexpr TokenizerKind kKinds[] = {
    {"char", true, false, "", nullptr},
    {"byte", false, false, "", [](Sources, const TrainingOptions&) -> Trained { return std::make_shared<ByteTokenizer>(); }},
    {"word", true, false, "vocab min-count special", train_words},
    {"bpe", true, true, "vocab min-count special split", train_bpe},
};

// Collects and counts the characters, and cuts plain texts by character count.
Trained make_char_tokenizer(std::vector<Documents>& sources, double train_fraction, bool has_line_end) {
  CharacterSet characters;
  for (Documents& source : sources) {
    const int64_t before = characters.count();
    characters.add(source);
    if (source.is_text() && train_fraction > 0) cut_text(source, train_fraction, characters.count() - before);
  }
  if (has_line_end) characters.add("\n", 0);
  return std::make_shared<CharTokenizer>(characters.sorted());
}

// Returns the part of a plain text before its cut, and cuts the text if necessary. In other formats, returns the first documents, as
// Tokens::split does.
Documents training_part(Documents& documents, double train_fraction) {
  if (documents.is_text() && documents.cut == 0) cut_text(documents, train_fraction);
  Documents part = documents;
  part.stops_at_cut = documents.is_text();
  if (part.stops_at_cut) return part;
  int64_t all = 0;
  DocumentReader reader(documents, complete_utf8_prefix);
  for (DocumentPiece piece; reader.next(piece);) all += piece.starts && reader.has_tokens(piece);
  part.limit = static_cast<int64_t>(static_cast<double>(all) * train_fraction);
  return part;
}

// ---- Reading files
std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

std::vector<BpeTokenizer::Pair> read_merges(const std::string& text) {
  std::vector<BpeTokenizer::Pair> merges;
  int64_t number = 0;
  for (const std::string& line : split_lines(text)) {
    ++number;
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const size_t blank = line.find(' ');
    if (blank == line.npos || blank == 0 || blank + 1 == line.size() || line.find(' ', blank + 1) != line.npos)
      fail("line {}: expected two tokens separated by a blank, got '{}'", {number, one_line(line)});
    merges.emplace_back(line.substr(0, blank), line.substr(blank + 1));
  }
  return merges;
}

Vocabulary read_vocabulary(const std::string& text) {
  const Json root = parse_json(text, "vocabulary");
  if (!root.is_object() || root.empty()) fail("vocabulary: expected an object of tokens and their ids");
  return Vocabulary::of_json(root);
}

// A transformers file in the same folder, or empty.
std::string find_neighbour(const std::string& path, const char* name) {
  const std::string neighbour = fs::path(path).parent_path() / name;
  return is_there(neighbour) ? neighbour : "";
}

Json read_if_there(const std::string& path) { return path.empty() ? Json() : read_json(path); }

// Error: transformers files next to the merges specify a tokenizer other than GPT-2's, or more tokens. The ids would be wrong.
void check_is_gpt2(const std::string& merges) {
  const auto refuse = [](const std::string& reason) {
    fail("{}: merges with a vocabulary are supported only for GPT-2 without added tokens; save_pretrained of transformers writes a "
         "tokenizer.json",
        {reason});
  };
  const std::string path = find_neighbour(merges, "config.json");
  const Json config = read_if_there(path);
  for (const auto& [key, gpt2] : {std::pair{"model_type", "gpt2"}, {"tokenizer_class", "GPT2Tokenizer"}})
    if (const std::string name = read_member<std::string>(config, key, path).value_or(gpt2);
        name != gpt2 && name != gpt2 + std::string("Fast"))
      refuse(path + ": " + key + ": " + one_line(name));
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"})
    if (const std::string file = find_neighbour(merges, name); !file.empty()) refuse(file);
}

// Merges and their vocabulary in the same folder: vocab.bpe and encoder.json, or merges.txt and vocab.json.
std::shared_ptr<const Tokenizer> open_merges(const std::string& path) {
  const auto& [end, other_end] = path.ends_with(kMerges[0][0]) ? kMerges[0] : kMerges[1];
  const std::string vocabulary = path.substr(0, path.size() - std::string_view(end).size()) + other_end;
  if (!is_file(vocabulary)) fail("{}: needs {} in the same folder", {path, other_end});
  const std::string merges = read_text(path, kMaxTokenizer), pieces = read_text(vocabulary, kMaxTokenizer);
  Vocabulary read = about(vocabulary, [&] { return read_vocabulary(pieces); });
  check_is_gpt2(path);
  return about(
      path, [&] { return std::make_shared<BpeTokenizer>(std::move(read), read_merges(merges), std::vector<AddedToken>(), BpeOptions()); });
}

std::shared_ptr<const Tokenizer> read_vocab_txt(const std::string& path, const std::string& text, const OpenOptions& options) {
  check_utf8("vocabulary", text, 0);
  Vocabulary vocabulary(split_lines(text));
  const std::string config_path = find_neighbour(path, "tokenizer_config.json");
  const Json config = read_if_there(config_path);
  const auto flag = [&](const char* key, bool otherwise) { return read_member<bool>(config, key, config_path).value_or(otherwise); };
  WordPieceOptions wordpiece;
  wordpiece.text.lowercase = options.lowercase || flag("do_lower_case", config.is_object());
  wordpiece.text.strip_accents = flag("strip_accents", wordpiece.text.lowercase);
  wordpiece.text.ideographs = flag("tokenize_chinese_chars", true);
  std::vector<AddedToken> special = find_bert_tokens(vocabulary);
  return std::make_shared<WordPieceTokenizer>(std::move(vocabulary), std::move(special), std::move(wordpiece));
}

}  // namespace

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

std::string TokenizerRecipe::key() const {
  return format_message("{} {} {} {} {} {}", {name, training.vocab, training.min_count, name_of(eos), eos_is_default, has_line_end});
}

std::shared_ptr<const Tokenizer> read_tokenizer(const TokenizerRecipe& recipe) {
  const auto tokenizer = open_tokenizer(recipe.name, recipe.open);
  if (!recipe.eos_is_default) return with_eos(tokenizer, recipe.eos, recipe.eos_piece);
  return recipe.eos == Eos::document ? with_own_eos(tokenizer) : tokenizer;
}

std::shared_ptr<const Tokenizer> make_tokenizer(const TokenizerRecipe& recipe, std::vector<Documents>& sources, double train_fraction) {
  const TokenizerKind& kind = *recipe.kind();
  TrainingOptions options = recipe.training;
  if (kind.needs_size && options.vocab == 0) fail("{} tokenizer: training needs a vocabulary size", {kind.name});
  const bool has_end = kind.takes_eos || !recipe.eos_is_default;
  const Eos eos = has_end ? recipe.eos : Eos::none;
  const std::string piece = recipe.eos_piece.empty() ? kEos : recipe.eos_piece;
  if (eos != Eos::none) options.special.push_back(piece);
  options.lines = eos == Eos::line;
  std::vector<Documents> parts;
  for (Documents& source : sources)
    if (kind.train) parts.push_back(train_fraction > 0 ? training_part(source, train_fraction) : source);
  const auto made = kind.train ? kind.train(parts, options) : make_char_tokenizer(sources, train_fraction, recipe.has_line_end);
  return with_eos(made, eos, piece);
}

bool names_tokenizer_file(const std::string& text) {
  if (text.find('/') != text.npos) return true;
  for (const char* end : {".json", ".bpe", ".txt", ".model", ".tiktoken"})
    if (text.ends_with(end)) return true;
  return is_there(text);
}

std::string find_tokenizer_file(const std::string& folder) {
  for (const char* name : {"tokenizer.json", "vocab.bpe", "merges.txt", kVocabTxt, "tokenizer.model", "tokenizer.tiktoken"})
    if (std::string path = fs::path(folder) / name; is_file(path)) return path;
  return "";
}

std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& path, const OpenOptions& options) {
  if (is_folder(path)) {
    const std::string file = find_tokenizer_file(path);
    if (file.empty()) fail("{}: this folder has no tokenizer.json, vocab.bpe, merges.txt or vocab.txt", {path});
    return open_tokenizer(file, options);
  }
  if (options.lowercase && !path.ends_with(kVocabTxt))
    fail("{}: lower case applies only to a vocab.txt; other files define their own case", {path});
  for (const auto& names : kMerges)
    if (path.ends_with(names[0])) return open_merges(path);
  if ((path.ends_with(".txt") || path.ends_with(".bpe")) && !path.ends_with(kVocabTxt))
    fail("{}: is not a tokenizer file, expected tokenizer.json, vocab.bpe, *merges.txt or *vocab.txt", {path});
  for (const auto& [end, program] : kForeign)
    if (path.ends_with(end))
      fail("{}: is a {} vocabulary; AutoTokenizer.from_pretrained(FOLDER).save_pretrained(NEW) of transformers writes a tokenizer.json",
          {path, program});
  const std::string text = read_text(path, kMaxTokenizer);
  return about(path, [&] { return path.ends_with(kVocabTxt) ? read_vocab_txt(path, text, options) : tokenizer_from_json(text); });
}

}  // namespace ricci
