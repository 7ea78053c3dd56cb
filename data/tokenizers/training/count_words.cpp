#include "data/tokenizers/training/count_words.h"

#include <algorithm>
#include <utility>

#include "core/cpu/parallel.h"
#include "core/error.h"

namespace ricci {

WordCounter::Slot& WordCounter::place(uint64_t hash, std::string_view word) {
  const size_t mask = slots_.size() - 1;
  for (size_t index = hash & mask;; index = (index + 1) & mask) {
    Slot& slot = slots_[index];
    if (slot.count == 0 || (slot.hash == hash && text_of(slot) == word)) return slot;
  }
}

void WordCounter::add(std::string_view word, int64_t count) {
  const uint64_t hash = std::hash<std::string_view>()(word);
  Slot& slot = place(hash, word);
  if (slot.count == 0) {
    slot = {hash, texts_.size(), count, static_cast<uint32_t>(word.size())};
    texts_ += word;
    if (++used_ * 2 > slots_.size()) grow();
  } else {
    slot.count += count;
  }
}

void WordCounter::grow() {
  const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
  for (const Slot& slot : before)
    if (slot.count > 0) place(slot.hash, text_of(slot)) = slot;
}

namespace {

struct CountedPart {
  std::string text;
  int64_t offset;
  std::string place;
};

// Each thread counts its share of the parts with a counter of its own.
void count_parts(std::vector<CountedPart>& parts, const CountPart& count_part, std::vector<WordCounter>& counters) {
  const size_t lanes = counters.size();
  parallel_for_first_error(static_cast<int64_t>(lanes), 1, [&](int64_t begin, int64_t end) {
    for (auto lane = static_cast<size_t>(begin); lane < static_cast<size_t>(end); ++lane)
      for (size_t i = parts.size() * lane / lanes; i < parts.size() * (lane + 1) / lanes; ++i) try {
          count_part(parts[i].text, parts[i].offset, counters[lane]);
        } catch (const Error& problem) {
          fail("{}: {}", {parts[i].place, problem.what()});
        }
  });
  parts.clear();
}

}  // namespace

std::vector<CountedWord> count_words(const Texts& texts, const Tokenizer& tokenizer, const CountPart& count_part) {
  constexpr size_t bytes_at_once = 16 << 20, parts_at_once = 1 << 16;
  std::vector<WordCounter> counters(static_cast<size_t>(thread_count()));
  std::vector<CountedPart> parts;
  size_t bytes = 0;
  const auto complete_prefix = [&](std::string_view text) { return tokenizer.complete_prefix(text); };
  texts.for_each_piece(complete_prefix, [&](std::string_view piece, int64_t offset, const std::string& place) {
    parts.push_back({std::string(piece), offset, place});
    bytes += piece.size();
    if (bytes < bytes_at_once && parts.size() < parts_at_once) return;
    count_parts(parts, count_part, counters);
    bytes = 0;
  });
  count_parts(parts, count_part, counters);
  for (size_t i = 1; i < counters.size(); ++i)
    counters[i].for_each([&](std::string_view word, int64_t count) { counters[0].add(word, count); });
  std::vector<CountedWord> words;
  counters[0].for_each([&](std::string_view word, int64_t count) { words.push_back({std::string(word), count}); });
  std::sort(words.begin(), words.end(), [](const CountedWord& a, const CountedWord& b) { return a.word < b.word; });
  return words;
}

}  // namespace ricci
