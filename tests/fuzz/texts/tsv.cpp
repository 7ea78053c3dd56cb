// Fuzzes TSV, and text that a separator divides into documents. The first byte chooses how it is read.
#include "tests/fuzz/texts/records.h"

using namespace ricci;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto encoding = static_cast<Encoding>(data[0] % 3);
  DocumentOptions options{.format = format_of(kTsv)};
  if (data[0] & 4) options.label_field = "1", options.classes = 5;
  if (data[0] & 8) options.text_field = "3";
  fuzz::read_documents(text, encoding, options);
  for (const char* documents : {"file", "line", "blank_line", "<|end|>"}) fuzz::read_documents(text, encoding, {.documents = documents});
  return 0;
}
