#include "data/tokenizers/kinds.h"

#include "core/error.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"

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
  if (eos.behind != Eos::none && !kind.has_pieces)
    fail("{} tokenizer: its vocabulary has no place for '{}'", {kind.name, one_line(eos.piece)});
  if (eos.behind != Eos::none) options.special.push_back(eos.piece);
  options.lines = eos.behind == Eos::line;
  return with_eos(kind.train(text, options), eos.behind, eos.piece);
}

}  // namespace ricci
