// Texts and documents as shards in the cache, because later starts of a training then read and encode no text. The cache holds folders as
// ricci-prepare makes them, and a first start that was interrupted continues in its folder. A text is read twice at first: once for its
// characters or its length, once to be encoded; three times where a vocabulary is trained on a part of it; later not at all while the
// system's records of its files are as they were.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/formats/documents.h"
#include "data/shards/tokens.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

// $RICCI_CACHE, else $XDG_CACHE_HOME/ricci, else $HOME/.cache/ricci, else empty.
std::string default_cache_folder();

struct CachedText {
  std::shared_ptr<const Tokenizer> tokenizer;
  Tokens tokens;                // documents of records, to be cut by split(); or blocks of a text, to be cut by split_first()
  int64_t cut_byte = 0;         // bytes before the second document, if a text is cut
  int64_t empty_documents = 0;  // documents without tokens, which `tokens` lack; counted when they are encoded
  std::string note = {};        // a line for the user: a cache of an earlier version is made again
  std::string fault = {};       // why the shards are not in the cache folder, such as a full disk
};

// A tokenizer that is made from the sources; no key: none is.
struct TokenizerRequest {
  std::string key;                // with the sources it decides which tokenizer is made; one that is given may be it
  bool reads_characters = false;  // make() gets the characters of all sources; of records with line ends
  // all_cut: the characters or the documents that train, of all sources as one; 0 if they are not cut.
  std::function<std::shared_ptr<const Tokenizer>(const std::string& characters, int64_t all_cut)> make;
};

// The sources with the tokenizer that is given, or else made. They are joined texts, or records. A train_fraction above 0 cuts each text
// before the character floor(fraction * characters). A cache folder that cannot be used, or an empty name, means files in a folder for
// temporary files, without a name. Users can share a cache folder, and its rights stay as they are.
// Shards that are cut, damaged or of other files or another tokenizer are made again; a corpus that is open stays readable. Another program
// that makes the same shards is waited for.
// Errors: the files' and the tokenizer's; a source too short to be cut; one without tokens; a full disk.
std::vector<CachedText> open_cached(const std::vector<Documents>& sources, double train_fraction,
    const std::shared_ptr<const Tokenizer>& given, const TokenizerRequest& request, const std::string& cache_folder);

// word_labels(documents), which are kept in the cache.
std::vector<std::string> cached_word_labels(const Documents& documents, const std::string& cache_folder);

}  // namespace ricci
