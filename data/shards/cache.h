// The cache keeps results computed from texts: token shards, tokenizers and label names. A text is not read again while the sizes, times
// and inodes of its files stay the same.
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

// The first of $RICCI_CACHE, $XDG_CACHE_HOME/ricci and $HOME/.cache/ricci that is set, or empty.
std::string default_cache_folder();

struct CachedText {
  Tokens tokens;
  int64_t empty_documents = 0;  // documents without tokens, omitted from `tokens`; counted only when the text is encoded
};

// Each function finds its result in the cache, or makes and adds it. A result is made again if it is damaged or its files changed; after
// an interruption, a later call continues. If another program is making the result, the function waits. If the cache folder cannot be used,
// or its name is empty, the files are temporary.
class Cache {
 public:
  explicit Cache(std::string folder = default_cache_folder()) : folder_(std::move(folder)) {}

  // The result of make_tokenizer.
  std::shared_ptr<const Tokenizer> tokenizer(const TokenizerRecipe& recipe, std::vector<Documents>& sources, double train_fraction);
  // The result of word_labels.
  std::vector<std::string> labels(const Documents& documents);
  // The tokens of documents. A train_fraction above 0 cuts a plain text. Errors: the files' and the tokenizer's; the text is too short to
  // cut or has no tokens; the disk is full.
  CachedText tokens(const Documents& documents, const std::shared_ptr<const Tokenizer>& tokenizer, double train_fraction = 0);

  const std::string& fault() const { return fault_; }  // why a result is not in the cache, such as a full disk

 private:
  template <class Find, class Make> auto find_or_make(const std::string& name, const Find& find, const Make& make);
  template <class Make> std::string text(const std::string& name, const Make& make);
  std::optional<FolderLock> lock(const std::string& folder);
  void remove_replaced(const std::string& name) const;

  std::string folder_, fault_;
};

}  // namespace ricci
