// A file per text and question: a hash of text and answer in 16 digits, a line end, the answer.
#include "data/text/text_cache.h"

#include "core/error.h"
#include "core/files/file.h"
#include "core/files/hash.h"

namespace ricci {
namespace {

constexpr size_t kDigits = 16;
constexpr int64_t kMaxAnswer = 16 << 20;  // bytes; every character there is takes 4.3 million

std::string head_of(const TextSource& text, const std::string& answer) {
  return format_message("{:016x}\n", {static_cast<int64_t>(hash_bytes(answer, text.content_hash()) >> 1)});
}

// The answer that is kept; nothing where there is none, or it is of another text, or damaged.
std::optional<std::string> kept(const FilePlace& place, const TextSource& text) {
  try {
    const std::string known = read_text(place, kMaxAnswer);
    if (known.size() <= kDigits) return {};
    const std::string answer = known.substr(kDigits + 1);
    if (known == head_of(text, answer) + answer) return answer;
  } catch (const Error&) {
  }
  return {};
}

}  // namespace

std::string remembered(
    const TextSource& text, const std::string& what, const std::string& cache_folder, const std::function<std::string()>& find) {
  std::optional<FilePlace> place;
  try {
    if (!cache_folder.empty())
      place.emplace(own_folder(cache_folder), format_message("{}-{:016x}", {what, static_cast<int64_t>(text.place_hash() >> 1)}));
  } catch (const Error&) {  // no folder to remember it in
  }
  if (!place) return find();
  if (const auto answer = kept(*place, text)) return *answer;
  const std::string answer = find();
  text.check_unchanged();
  try {
    write_file_atomically(*place, head_of(text, answer) + answer);
  } catch (const Error&) {  // it is found again the next time
  }
  return answer;
}

}  // namespace ricci
