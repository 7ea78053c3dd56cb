#include "data/shards/corpus.h"

#include <algorithm>
#include <utility>

#include "core/choice.h"
#include "core/error.h"
#include "core/files/checksum.h"
#include "data/shards/cache.h"
#include "data/tokenizers/char_tokenizer.h"

namespace ricci {
namespace {

// ---- Tokenizers
std::shared_ptr<const Tokenizer> read_file(TokenizerRecipe recipe) {
  const auto place = look_for_data(recipe.name);
  if (!place)
    fail("tokenizer: {0} does not exist; ricci-tokenize train TEXT -o {0} makes one; the first lines of the run file can have the command",
        {recipe.name});
  recipe.name = place->string();
  return read_tokenizer(recipe);
}

// Error: a key that only texts can obey, because shards hold tokens already.
void check_shards_do(const TokenizerRecipe& recipe, const std::string& path) {
  if (recipe.eos != Eos::none && !recipe.eos_is_default)
    fail("eos: {}, but {} holds tokens already; ricci-prepare --eos prepares them so", {name_of(recipe.eos), path});
}

// Error: the recipe names a tokenizer, and the shards have another one.
void check_tokenizer(const TokenizerRecipe& recipe, const std::string& path, const Tokenizer& theirs) {
  if (recipe.name == TokenizerRecipe().name || recipe.name == theirs.name()) return;
  auto asked = recipe.kind() ? nullptr : read_file(recipe);
  if (asked && asked->eos() == Eos::none && theirs.eos() == Eos::document) asked = with_eos(asked, Eos::document, end_of_text(theirs));
  if (!asked || asked->hash() != theirs.hash())
    fail("tokenizer: {}, but {} has its own, a {} tokenizer of {} tokens", {recipe.name, path, theirs.name(), theirs.vocab_size()});
}

std::shared_ptr<const Tokenizer> tokenizer_for_shards(const TokenizerRecipe& recipe, const std::string& path) {
  if (has_tokenizer(path)) {
    const auto theirs = tokenizer_of_shards(path);
    check_tokenizer(recipe, path, *theirs);
    return theirs;
  }
  if (!recipe.kind()) return read_file(recipe);
  if (recipe.name == "byte") return std::make_shared<ByteTokenizer>();
  fail("tokenizer: {} is made from a text, but {} holds tokens; name the file of the tokenizer that made them", {recipe.name, path});
}

// ---- Tokens
// The training and the validation part of a source. Without a fraction all of it trains.
std::pair<Tokens, Tokens> divide(const Tokens& tokens, bool is_text, double train_fraction) {
  if (train_fraction == 0) return {is_text ? tokens.in_blocks() : tokens, Tokens()};
  if (!is_text) return tokens.split(train_fraction);
  const auto [train, validation] = tokens.split_at_cut();
  return {train.in_blocks(), validation};
}

// The documents with an answer inside the context, which are found once; other tokens as they are.
Tokens keep_answers(const Tokens& tokens, int64_t context, MaskedCounts& counts) {
  if (context == 0 || !tokens.has_mask()) return tokens;
  const auto [kept, here] = keep_masked(tokens, context);
  counts.all += here.all;
  counts.cut += here.cut;
  counts.left_out += here.left_out;
  return kept;
}

}  // namespace

Sources find_sources(const std::vector<std::string>& paths, const DocumentOptions& documents, Encoding encoding,
    std::span<const BuiltInText> built_in, bool is_mixed) {
  Sources found;
  const std::string *shards = nullptr, *text = nullptr;
  for (const std::string& path : paths) {
    const std::string place = look_for_data(path).value_or(path).string();  // not found: a built-in text, or opening it reports the error
    const bool is_prepared = about("data", [&] { return names_shards(place); });
    if (is_prepared) found.shards.push_back(place);
    (is_prepared ? shards : text) = &path;
  }
  if (shards && text) fail("data: {} holds shards and {} is a text; ricci-prepare turns texts into shards", {*shards, *text});
  if (shards) return found;
  const auto open = [&](const std::vector<std::string>& some) {
    return Documents{.files = TextSource(some, built_in).read_as(encoding), .options = documents};
  };
  const Documents all = open(paths);
  DocumentOptions labelled = documents;
  if (documents.classes > 0 && documents.labels.empty()) labelled.labels = Cache().labels(all);
  if (!labelled.labels.empty() && std::ssize(labelled.labels) != documents.classes)
    fail("model.classes: {}, but {} has labels of {} kinds, from '{}' to '{}'",
        {documents.classes, all.files.name(), labelled.labels.size(), one_line(labelled.labels.front()), one_line(labelled.labels.back())});
  if (!is_mixed) found.texts = {all};
  else
    for (const std::string& path : paths) found.texts.push_back(open({path}));
  for (Documents& each : found.texts) each.options = labelled;
  return found;
}

std::shared_ptr<const Tokenizer> choose_tokenizer(const TokenizerRecipe& recipe, Sources& data, double train_fraction) {
  if (!data.shards.empty()) {
    check_shards_do(recipe, data.shards[0]);
    return tokenizer_for_shards(recipe, data.shards[0]);
  }
  if (!recipe.kind()) return read_file(recipe);
  if (recipe.kind()->needs_size && recipe.training.vocab == 0)
    fail("tokenizer: {} needs the size of its vocabulary, as in model.vocab=4000", {recipe.name});
  if (traits_of(data.texts.at(0).options.format).has_template)
    fail("tokenizer: {}, but format: messages needs one with the markers of chat: a file, or the tokenizer of init", {recipe.name});
  for (Documents& each : data.texts) each.options.keep_line_ends = recipe.eos != Eos::document;
  return Cache().tokenizer(recipe, data.texts, train_fraction);
}

uint64_t Corpus::hash() const {
  return hash_bytes(format_message("{} {}", {static_cast<int64_t>(train.hash()), static_cast<int64_t>(validation.tokens.hash())}));
}

Corpus open_corpus(const CorpusRequest& request) {
  Cache cache;
  Corpus corpus{.tokenizer = request.tokenizer};
  std::vector<Tokens> validation;
  const auto take = [&](const std::pair<Tokens, Tokens>& parts) {
    corpus.sources.push_back(keep_answers(parts.first, request.context, corpus.answers));
    validation.push_back(parts.second);
  };
  for (Documents text : request.data.texts) {
    text.options.keep_line_ends = request.tokenizer->eos() != Eos::document;
    const auto [tokens, cut_byte, empty_documents] = cache.tokens(text, request.tokenizer, request.train_fraction);
    take(divide(tokens, text.is_text(), request.train_fraction));
    corpus.labels = text.options.labels;
    if (text.is_text() && request.data.texts.size() == 1) corpus.validation = {{}, text, cut_byte};
    if (empty_documents > 0 && text.options.classes > 0)
      request.warn(format_message("{}: documents without text, which are left out: {}", {one_line(text.files.name()), empty_documents}));
  }
  if (!cache.fault().empty())
    request.warn(one_line(cache.fault(), cache.fault().size()) + "; the text is not cached, and the next start encodes it again");
  for (const std::string& path : request.data.shards) take(divide(Tokens::open(path, *request.tokenizer), false, request.train_fraction));
  corpus.train = join(corpus.sources);
  if (!request.validation.empty()) corpus.validation = open_validation(request);
  else if (request.train_fraction > 0) {
    MaskedCounts ignored;
    corpus.validation.tokens = keep_answers(join(std::move(validation)), request.context, ignored);
  }
  return corpus;
}

Validation open_validation(const CorpusRequest& request) {
  CorpusRequest whole = request;
  if (!whole.validation.empty()) {  // is read like data, but not cut
    whole.data = std::exchange(whole.validation, {});
    whole.train_fraction = 0;
    const Corpus all = open_corpus(whole);
    return {all.train, all.validation.text};
  }
  whole.context = 0;  // the answers in the training part do not matter
  Validation end = open_corpus(whole).validation;
  MaskedCounts ignored;
  end.tokens = keep_answers(end.tokens, request.context, ignored);
  return end;
}

}  // namespace ricci
