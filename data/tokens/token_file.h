// A tokenised text on disk, for texts larger than memory. Made once, found again by later runs.
//
// Layout, little-endian: the ids as u16, or as u32 where the vocabulary exceeds 65,536, then the TokenTrailer of
// token_storage.h. Reading uses pread and not a memory map: a crop costs one system call, resident memory does not grow
// with the part of the text that was seen, and a file that another program cuts is an error instead of a SIGBUS.
// Opening compares a hash over all of its bytes: a cache that was damaged or exchanged is never trained on.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "data/text/text_source.h"
#include "data/tokenizers/tokenizer.h"
#include "data/tokens/tokens.h"

namespace ricci {

// $RICCI_CACHE, else $XDG_CACHE_HOME/ricci, else $HOME/.cache/ricci, else empty.
std::string default_cache_folder();

// A value; copies share the open file. Reading is safe from several threads.
class TokenFile final : public TokenSource {
 public:
  // The tokens of a text: from the cache folder where a valid file for this text and tokenizer lies, else tokenised
  // as a stream, written under a temporary name, synced and renamed. A file that is cut, damaged or of another text or
  // tokenizer is made again. The folder is this user's own (core/files/folder.h: own_folder); one that belongs to another user
  // or cannot be written, or an empty name, means a temporary file without a name.
  // origin() tells which of these happened. Errors: those of the text and of the tokenizer, a full disk.
  static TokenFile open(const TextSource& text, const Tokenizer& tokenizer, const std::string& cache_folder);
  // Ids made by a program, in a temporary file without a name. Error: an id outside the vocabulary.
  static TokenFile of_ids(std::span<const int64_t> ids, int64_t vocab_size);

  int64_t size() const override;
  int64_t vocab_size() const override;
  int64_t text_bytes() const;  // size of the text in bytes, for bits per byte; 0 for of_ids
  uint64_t hash() const override;
  uint64_t tokenizer_hash() const override;
  const std::string& name() const override;
  const std::string& origin() const;  // one line for the log: where the tokens came from, and why

  // Errors besides those of TokenSource: a file cut or damaged since it was opened.
  void read(int64_t first, std::span<int64_t> ids) const override;

 private:
  struct Contents;
  explicit TokenFile(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}
  std::shared_ptr<const Contents> contents_;
};

}  // namespace ricci
