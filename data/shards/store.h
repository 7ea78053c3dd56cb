// The tokens of texts and documents: shards in the cache, made when a source is opened for the first time and found there later without
// reading it. While the files are as they were, by their sizes and times, a source is not read again; a source is read twice at
// first, or three times where a vocabulary is trained on it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/shards/document_reader.h"
#include "data/shards/tokens.h"
#include "data/text/text.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

// $RICCI_CACHE, else $XDG_CACHE_HOME/ricci, else $HOME/.cache/ricci, else empty.
std::string default_cache_folder();

struct StoreSource {
  TextSource files;
  DocumentOptions documents = {};  // format text: all files are one text, which has blocks in the place of documents
  double train_fraction = 0;       // the first floor(fraction * characters) or documents train, the rest is validation; 0 if not cut
};

struct StoredSource {
  std::shared_ptr<const Tokenizer> tokenizer;
  Tokens train;                      // all of the source where it is not cut
  std::optional<Tokens> validation;  // only where the source is cut
  int64_t cut = 0;                   // characters, or documents, that train; 0 if not cut
  int64_t empty_documents = 0;       // documents without tokens, which neither part holds
  std::string cache_fault = {};      // why its files are not in the cache folder, such as a full disk; else empty
};

// A tokenizer that is made from the sources; no keys: none is.
struct TokenizerRequest {
  std::vector<std::string> keys;  // with the sources the first decides which tokenizer is made; one that is given may be of any of them
  bool reads_characters = false;  // make() gets the characters of all sources; of documents with line ends
  std::function<std::shared_ptr<const Tokenizer>(const std::string& characters, const std::vector<int64_t>& cuts, int64_t all_cut)> make;
};

// The sources with the tokenizer that is given, or else made. A cache folder that cannot be used, or an empty name, means files in a folder
// for temporary files, without a name. Users can share a cache folder, and its rights stay as they are.
// A store that is cut, damaged or of other files or another tokenizer is made again; a store that is open stays readable.
// Errors: the files' and the tokenizer's; a source too short to be cut; one without tokens; a full disk.
std::vector<StoredSource> open_sources(const std::vector<StoreSource>& sources, const std::shared_ptr<const Tokenizer>& given,
    const TokenizerRequest& request, const std::string& cache_folder);

}  // namespace ricci
