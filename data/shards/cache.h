// The cache keeps texts as shards, because otherwise every start of ricci-train would read and encode them again. It has folders as
// ricci-prepare makes them, so a first start that was interrupted continues in its folder. The first start reads a text twice, once to
// count or collect its characters and once to encode it; if a vocabulary is trained on a part of the text, a third time. Later starts do
// not read it while the sizes, times and inodes of its files stay the same.
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

// The first that is set of $RICCI_CACHE, $XDG_CACHE_HOME/ricci and $HOME/.cache/ricci, or empty.
std::string default_cache_folder();

struct CachedText {
  std::shared_ptr<const Tokenizer> tokenizer;
  Tokens tokens;                // records, for split(); or a text, for split_at_cut()
  int64_t cut_byte = 0;         // bytes before the cut of a text
  int64_t empty_documents = 0;  // documents without tokens; `tokens` lacks them. Counted only when they are encoded
  std::string fault = {};       // why the shards are not in the cache, such as a full disk
};

// A tokenizer that is to be made from the sources.
struct TokenizerRequest {
  std::string key;                // the sources and this key determine the tokenizer; if empty, none is made
  bool reads_characters = false;  // make() needs the characters of all sources; of records also the line end
  // all_cut: number of characters or documents for training, in all sources together; 0 if they are not cut.
  std::function<std::shared_ptr<const Tokenizer>(const std::string& characters, int64_t all_cut)> make;
};

// Opens the sources (joined texts, or records) with the given tokenizer; if it is null, one is made. A train_fraction above 0 cuts
// each text before the character floor(fraction * characters). Shards that are damaged, or made from other files or by another tokenizer,
// are made again; open corpora stay readable. If another program makes the same shards, this one waits for it. If the cache folder cannot
// be used, or its name is empty, the shards are temporary files. Multiple users can share a cache folder; its access rights are not
// changed. Errors: the files' and the tokenizer's; a source too short to be cut; a source without tokens; a full disk.
std::vector<CachedText> open_cached(const std::vector<Documents>& sources, double train_fraction,
    const std::shared_ptr<const Tokenizer>& given, const TokenizerRequest& request, const std::string& cache_folder);

}  // namespace ricci
