// Files of ids without a header, two bytes each, the lower byte first, as in nanoGPT's train.bin.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace ricci {

class Tokenizer;

// A tokenizer that reads the bytes of a text as ids of the given tokenizer. Errors when reading: the file contains other numbers or a text;
// an id is outside the vocabulary; the last id is incomplete.
std::shared_ptr<const Tokenizer> make_id_reader(std::shared_ptr<const Tokenizer> tokenizer);

// Describes a file that cannot contain such ids, and a remedy, such as "a NumPy array; ...". Empty if the file can contain ids, or is too
// short to decide.
std::string other_than_ids(std::string_view start_of_file, int64_t vocab_size = 65536);

}  // namespace ricci
