// The cache keeps things that are made from texts: tokens as shards, tokenizers, and the names of labels. A text is not read again while
// the sizes, times and inodes of its files stay the same.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/files/file.h"
#include "data/formats/documents.h"
#include "data/shards/tokens.h"
#include "data/tokenizers/kinds.h"

namespace ricci {

// The first that is set of $RICCI_CACHE, $XDG_CACHE_HOME/ricci and $HOME/.cache/ricci, or empty.
std::string default_cache_folder();

struct CachedText {
  Tokens tokens;
  int64_t empty_documents = 0;  // documents without tokens; `tokens` lacks them. Counted only when they are encoded
};

// Each function finds its result in the cache, or makes it there. Damaged results are made again, as are those
// of files that changed; an interrupted one continues. If another program is making it, this one waits. If the cache folder cannot be used,
// or its name is empty, the files are temporary.
class Cache {
 public:
  explicit Cache(std::string folder = default_cache_folder()) : folder_(std::move(folder)) {}

  // make_tokenizer.
  std::shared_ptr<const Tokenizer> tokenizer(const TokenizerRecipe& recipe, std::vector<Documents>& sources, double train_fraction);
  // word_labels.
  std::vector<std::string> labels(const Documents& documents);
  // The tokens of documents. A train_fraction above 0 cuts a plain text. Errors: the files' and the tokenizer's; a text too short to be
  // cut; no tokens; a full disk.
  CachedText tokens(const Documents& documents, const std::shared_ptr<const Tokenizer>& tokenizer, double train_fraction = 0);

  const std::string& fault() const { return fault_; }  // why something is not in the cache, such as a full disk

 private:
  template <class Find, class Make> auto find_or_make(const std::string& name, const Find& find, const Make& make);
  template <class Make> std::string text(const std::string& name, const Make& make);
  std::optional<FolderLock> lock(const std::string& folder);
  void remove_replaced(const std::string& name) const;

  std::string folder_, fault_;
};

}  // namespace ricci
