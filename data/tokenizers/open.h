// Tokenizers from the files that they are published in.
#pragma once
#include <memory>
#include <string>

#include "data/tokenizers/tokenizer.h"

namespace ricci {

struct OpenOptions {
  bool lowercase = false;  // of a vocab.txt: text is put into lower case and loses its accents, as BERT's uncased models want it
};

// What `path` names:
//   tokenizer.json, or any .json that describes a whole tokenizer
//   vocab.bpe or *merges.txt (GPT-2's merges), with its encoder.json or *vocab.json beside it; or that JSON, with the merges beside
//   *vocab.txt (WordPiece, one piece per line)
//   a folder with one of these
// Errors: no such file, a file beside it is missing, and those of the format; each names the file.
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& path, const OpenOptions& options = {});

// Whether the text is a path that open_tokenizer could read and not the name of a kind of tokenizer.
bool names_tokenizer_file(const std::string& text);

}  // namespace ricci
