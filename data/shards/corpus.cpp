#include "data/shards/corpus.h"

#include <tuple>
#include <utility>

#include "core/choice.h"
#include "core/error.h"
#include "core/files/checksum.h"
#include "data/shards/cache.h"
#include "data/tokenizers/char_tokenizer.h"

namespace ricci {
namespace {

std::shared_ptr<const Tokenizer> read_file(TokenizerRecipe recipe) {
  const auto place = look_for_data(recipe.name);
  if (!place)
    fail("tokenizer: {0} does not exist; ricci tokenize train TEXT -o {0} makes one (the run file can begin with the command)",
        {recipe.name});
  recipe.name = place->string();
  return read_tokenizer(recipe);
}

// Returns the tokenizer in the shards, else the recipe's. Errors: the recipe asks for a different tokenizer, or for an end token (possible
// only for texts).
std::shared_ptr<const Tokenizer> tokenizer_for_shards(const TokenizerRecipe& recipe, const std::string& path) {
  if (recipe.eos != Eos::none && !recipe.eos_is_default)
    fail("eos: {}, but {} already contains tokens; set --eos in ricci prepare", {name_of(recipe.eos), path});
  const bool is_file = !recipe.kind();
  if (!has_tokenizer(path)) {
    if (is_file) return read_file(recipe);
    if (recipe.name == "byte") return std::make_shared<ByteTokenizer>();
    fail("tokenizer: {} is made from a text, but {} contains tokens; name the tokenizer file that encoded them", {recipe.name, path});
  }
  const auto theirs = tokenizer_of_shards(path);
  if (recipe.name == TokenizerRecipe().name || recipe.name == theirs->name()) return theirs;
  auto asked = is_file ? read_file(recipe) : nullptr;
  if (asked && asked->eos() == Eos::none && theirs->eos() == Eos::document) asked = with_eos(asked, Eos::document, end_of_text(*theirs));
  if (!asked || asked->hash() != theirs->hash())
    fail("tokenizer: {}, but {} already contains a {} tokenizer of {} tokens", {recipe.name, path, theirs->name(), theirs->vocab_size()});
  return theirs;
}

// Returns the training part of a source, and its end for validation. If train_fraction is 0, the full source is the training part.
std::pair<Tokens, Tokens> divide(const Tokens& tokens, bool is_text, double train_fraction) {
  if (train_fraction == 0) return {is_text ? tokens.in_blocks() : tokens, Tokens()};
  if (!is_text) return tokens.split(train_fraction);
  const auto [train, end] = tokens.split_at_cut();
  return {train.in_blocks(), end};
}

// Error: the shards have class names other than `labels`.
void check_labels(const std::string& folder, const std::vector<std::string>& labels) {
  const std::vector<std::string> theirs = labels_of_shards(folder);
  if (!theirs.empty() && !labels.empty() && theirs != labels)
    fail("labels: {}, but the classes in {} are {}", {join(labels, ", ", ", "), folder, join(theirs, ", ", ", ")});
}

// The training parts of all sources, and their ends for validation.
struct Parts {
  std::vector<Tokens> train = {};
  Validation end = {};
};

Parts open_parts(const Sources& sources, const CorpusRequest& request, double train_fraction) {
  Parts parts;
  std::vector<Tokens> ends;
  const auto take = [&](const Tokens& source, bool is_text) {
    request.check(source);
    const auto [train, end] = divide(source, is_text, train_fraction);
    parts.train.push_back(train);
    ends.push_back(end);
  };
  Cache cache;
  for (Documents text : sources.texts) {
    text.options.keep_line_ends = request.tokenizer->eos() != Eos::document;
    const auto [tokens, empty_documents] = cache.tokens(text, request.tokenizer, train_fraction);
    take(tokens, text.is_text());
    if (text.is_text() && sources.texts.size() == 1) parts.end = {{}, text, tokens.bytes_before_cut()};
    if (empty_documents > 0 && text.options.classes > 0)
      request.warn(format_message("{}: documents without text are left out: {}", {one_line(text.files.name()), empty_documents}));
  }
  if (!cache.fault().empty())
    request.warn(one_line(cache.fault(), cache.fault().size()) + "; the text is not cached: the next run will encode it again");
  for (const std::string& folder : sources.shards) {
    check_labels(folder, request.labels);
    take(Tokens::open(folder, *request.tokenizer), false);
  }
  if (train_fraction > 0) parts.end.tokens = join(std::move(ends));
  return parts;
}

}  // namespace

Sources find_sources(const std::vector<std::string>& paths, const DocumentOptions& documents, Encoding encoding,
    std::span<const BuiltInText> built_in, bool is_mixed) {
  Sources found;
  const std::string *shards = nullptr, *text = nullptr;
  for (const std::string& path : paths) {
    const std::string place = look_for_data(path).value_or(path).string();  // if not found: a built-in text, or an error on opening
    const bool is_prepared = about("data", [&] { return names_shards(place); });
    if (is_prepared) found.shards.push_back(place);
    (is_prepared ? shards : text) = &path;
  }
  if (shards && text) fail("data: {} contains shards, but {} is a text; ricci prepare turns texts into shards", {*shards, *text});
  if (shards) return found;
  const auto open = [&](const std::vector<std::string>& some) {
    found.texts.push_back({.files = TextSource(some, built_in).read_as(encoding), .options = documents});
  };
  if (!is_mixed) open(paths);
  else
    for (const std::string& path : paths) open({path});
  return found;
}

std::vector<std::string> find_labels(const Sources& data, const std::vector<std::string>& asked) {
  if (!asked.empty()) return asked;
  if (!data.shards.empty()) return labels_of_shards(data.shards[0]);
  const Documents& documents = data.texts.at(0);
  const int64_t classes = documents.options.classes;
  if (classes == 0) return {};
  const std::vector<std::string> labels = Cache().labels(documents);
  if (const int64_t kinds = std::ssize(labels); kinds > 0 && kinds != classes)
    fail("model.classes: {}, but {} has {} distinct labels, from '{}' to '{}'; set model.classes={}",
        {classes, documents.files.name(), kinds, one_line(labels.front()), one_line(labels.back()), kinds});
  return labels;
}

std::shared_ptr<const Tokenizer> choose_tokenizer(const TokenizerRecipe& recipe, Sources& data, double train_fraction) {
  if (!data.shards.empty()) return tokenizer_for_shards(recipe, data.shards[0]);
  if (!recipe.kind()) return read_file(recipe);
  if (recipe.kind()->needs_size && recipe.training.vocab == 0)
    fail("tokenizer: {} needs a vocabulary size, such as model.vocab=4000", {recipe.name});
  if (traits_of(data.texts.at(0).options.format).has_template)
    fail("tokenizer: {}, but format messages needs a tokenizer with chat markers, such as a file or the tokenizer of init", {recipe.name});
  for (Documents& text : data.texts) text.options.keep_line_ends = recipe.eos != Eos::document;
  return Cache().tokenizer(recipe, data.texts, train_fraction);
}

uint64_t Corpus::hash() const {
  return hash_bytes(format_message("{} {}", {static_cast<int64_t>(train.hash()), static_cast<int64_t>(validation.tokens.hash())}));
}

Corpus open_corpus(const CorpusRequest& request) {
  Corpus corpus{.tokenizer = request.tokenizer, .labels = request.labels};
  auto [sources, end] = open_parts(request.data, request, request.train_fraction);
  for (const Tokens& tokens : sources) {
    const auto [kept, answers] = keep_masked(tokens, request.context);
    corpus.sources.push_back(kept);
    corpus.answers += answers;
  }
  corpus.train = join(corpus.sources);
  if (request.validation.empty()) std::tie(end.tokens, end.answers) = keep_masked(end.tokens, request.context);
  corpus.validation = request.validation.empty() ? std::move(end) : open_validation(request);
  corpus.answers += corpus.validation.answers;
  return corpus;
}

Validation open_validation(const CorpusRequest& request) {
  const bool is_own = !request.validation.empty();
  auto [sources, end] = is_own ? open_parts(request.validation, request, 0) : open_parts(request.data, request, request.train_fraction);
  if (is_own) end = {join(std::move(sources)), end.text};
  std::tie(end.tokens, end.answers) = keep_masked(end.tokens, request.context);
  return end;
}

}  // namespace ricci
