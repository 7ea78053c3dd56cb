#include "apps/run/options.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "core/error.h"

namespace ricci::apps {
namespace {

// A folder may have an equals sign in its name, as runs/lr=0.1 has; no key has a slash. ~KEY takes a key back.
bool is_override(const std::string& word) {
  const size_t equals = word.find('='), slash = word.find('/');
  if (equals == word.npos) return word.starts_with('~') && slash == word.npos;
  return slash > equals;
}

// "model.layers" of model.layers=6 and of ~model.layers.
std::string key_of(const std::string& word) {
  const size_t start = word.starts_with('~') ? 1 : 0;
  return word.substr(start, word.find('=') - start);
}

// True if one of them is the other, or the section that it is in.
bool are_about_one(const std::string& key, const std::string& other) {
  return key == other || other.starts_with(key + ".") || key.starts_with(other + ".");
}

// CLI11 keeps words with dashes (given here without them) apart from words without, so it is not known which of two was typed last.
// Error: a key, or a section and a key in it, is given in both ways.
void check_one_way(const std::vector<std::string>& with_dashes, const std::vector<std::string>& without) {
  for (const std::string& dashed : with_dashes)
    for (const std::string& plain : without)
      if (are_about_one(key_of(dashed), key_of(plain)))
        throw CLI::ValidationError("--" + one_line(dashed) + " and " + one_line(plain) +
                                   " are about the same key: write both without dashes, so that the last one counts");
}

// The right way to give a key that was meant by a word with dashes: --lr, --~lr.
std::string hint_for(const CLI::App& app, const std::string& word) {
  if (!word.starts_with("--")) return "";
  if (const std::string nearest = nearest_option(app, word); !nearest.empty()) return nearest;
  const std::string key = word.substr(2);
  return "; keys of a run file are given as " + key + (key.starts_with('~') ? "" : "=VALUE");
}

}  // namespace

void add_run_arguments(CLI::App& app, RunOptions& options, const char* help, bool several) {
  auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("run", *words, help)->type_name(several ? "[FILE ...] [KEY=VALUE ...]" : "[FILE] [KEY=VALUE ...]");
  app.allow_extras();
  app.parse_complete_callback([&app, &options, words, several] {
    std::vector<std::string> with_dashes, without;
    for (const std::string& word : app.remaining()) {
      if (!word.starts_with("--") || word.find('=') == word.npos) throw CLI::ExtrasError(app.get_name(), {word + hint_for(app, word)});
      with_dashes.push_back(word.substr(2));
    }
    for (const std::string& word : *words) {
      if (word.empty()) throw CLI::ValidationError("the name of a run file is empty");
      if (word[0] == '=')
        throw CLI::ValidationError(one_line(word) + ": a key and its value have no blanks around the equals sign, as data=my.txt");
      const bool is_key = is_override(word);
      const bool is_first = options.file().empty();
      if (!is_key && !is_first && !several) throw CLI::ValidationError("two run files: " + options.file() + " and " + word);
      if (is_key) without.push_back(word);
      else if (is_first) options.files_[0] = word;
      else options.files_.push_back(word);
    }
    check_one_way(with_dashes, without);
    options.overrides_ = with_dashes;
    options.overrides_.insert(options.overrides_.end(), without.begin(), without.end());
  });
}

}  // namespace ricci::apps
