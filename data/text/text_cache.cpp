// A file per text and question: a hash of text and answer in 16 digits, a line end, the answer.
#include "data/text/text_cache.h"

#include <filesystem>

#include "core/error.h"
#include "core/files/file.h"
#include "core/files/hash.h"

namespace ricci {
namespace {

constexpr size_t kDigits = 16;

std::string head_of(const TextSource& text, const std::string& answer) {
  return format_message("{:016x}\n", {static_cast<int64_t>(hash_bytes(answer, text.content_hash()) >> 1)});
}

}  // namespace

std::string remembered(const TextSource& text, const std::string& what, const std::string& cache_folder,
                       const std::function<std::string()>& find) {
  if (cache_folder.empty()) return find();
  const std::string path = cache_folder + format_message("/{}-{:016x}", {what, static_cast<int64_t>(text.place_hash() >> 1)});
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) {
    const std::string known = read_text(path);
    if (known.size() > kDigits) {
      const std::string answer = known.substr(kDigits + 1);
      if (known == head_of(text, answer) + answer) return answer;
    }
  }
  const std::string answer = find();
  try {
    std::filesystem::create_directories(cache_folder, error);
    write_file_atomically(path, head_of(text, answer) + answer);
  } catch (const Error&) {  // it is found again the next time
  }
  return answer;
}

}  // namespace ricci
