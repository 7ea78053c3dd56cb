// Fuzzes CSV. The first byte chooses how it is read.
#include "tests/fuzz/texts/records.h"

using namespace ricci;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  DocumentOptions options{.format = format_of(kCsv)};
  if (data[0] & 4) options.label_field = "l", options.classes = 5;
  if (data[0] & 8) options.text_field = "b c";
  fuzz::read_documents({reinterpret_cast<const char*>(data) + 1, size - 1}, static_cast<Encoding>(data[0] % 3), options);
  return 0;
}
