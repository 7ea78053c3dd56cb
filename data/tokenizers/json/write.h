// Tokenizers as tokenizer.json files that Hugging Face's tokenizers read.
#pragma once
#include <string>

namespace ricci {

class BpeTokenizer;
class WordPieceTokenizer;
class WordTokenizer;

std::string json_of(const BpeTokenizer& tokenizer);
std::string json_of(const WordPieceTokenizer& tokenizer);
std::string json_of(const WordTokenizer& tokenizer);

}  // namespace ricci
