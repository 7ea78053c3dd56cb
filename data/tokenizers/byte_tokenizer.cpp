// id = value of the byte.
#include "data/tokenizers/byte_tokenizer.h"

namespace ricci {

void ByteTokenizer::append_ids(std::string_view piece, int64_t, std::vector<int64_t>& ids) const {
  for (const char byte : piece) ids.push_back(static_cast<unsigned char>(byte));
}

}  // namespace ricci
