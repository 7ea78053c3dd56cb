#include "data/tokenizers/training/common.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/cpu/parallel.h"
#include "core/error.h"
#include "data/text/text.h"
#include "data/tokenizers/vocabulary.h"

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
void count_parts(std::vector<CountedPart>& parts, const WordDivision& division, std::vector<WordCounter>& counters) {
  const size_t lanes = counters.size();
  parallel_for_first_error(static_cast<int64_t>(lanes), 1, [&](int64_t begin, int64_t end) {
    for (auto lane = static_cast<size_t>(begin); lane < static_cast<size_t>(end); ++lane)
      for (size_t i = parts.size() * lane / lanes; i < parts.size() * (lane + 1) / lanes; ++i) try {
          division.count(parts[i].text, parts[i].offset, counters[lane]);
        } catch (const Error& problem) {
          fail("{}: {}", {parts[i].place, problem.what()});
        }
  });
  parts.clear();
}

}  // namespace

std::vector<CountedWord> count_words(const Texts& texts, const WordDivision& division) {
  constexpr size_t bytes_at_once = 16 << 20, parts_at_once = 1 << 16;
  std::vector<WordCounter> counters(static_cast<size_t>(thread_count()));
  std::vector<CountedPart> parts;
  size_t bytes = 0;
  texts.for_each_piece(division.complete_prefix, [&](std::string_view piece, int64_t offset, const std::string& place) {
    parts.push_back({std::string(piece), offset, place});
    bytes += piece.size();
    if (bytes < bytes_at_once && parts.size() < parts_at_once) return;
    count_parts(parts, division, counters);
    bytes = 0;
  });
  count_parts(parts, division, counters);
  for (size_t i = 1; i < counters.size(); ++i)
    counters[i].for_each([&](std::string_view word, int64_t count) { counters[0].add(word, count); });
  std::vector<CountedWord> words;
  counters[0].for_each([&](std::string_view word, int64_t count) { words.push_back({std::string(word), count}); });
  std::sort(words.begin(), words.end(), [](const CountedWord& a, const CountedWord& b) { return a.word < b.word; });
  return words;
}

std::vector<std::string> special_pieces(const std::vector<std::string>& of_kind, const std::vector<std::string>& asked) {
  std::vector<std::string> pieces;
  for (const auto* list : {&of_kind, &asked})
    for (const std::string& piece : *list)
      if (std::find(pieces.begin(), pieces.end(), piece) == pieces.end()) pieces.push_back(piece);
  return pieces;
}

std::vector<AddedToken> as_added(const std::vector<std::string>& special) {
  std::vector<AddedToken> added;
  for (const std::string& piece : special) added.push_back({.id = static_cast<int64_t>(added.size()), .content = piece});
  return added;
}

std::shared_ptr<const Tokenizer> with_special(std::shared_ptr<const Tokenizer> tokenizer, const std::vector<std::string>& special) {
  for (const std::string& piece : special) {
    if (const int64_t id = tokenizer->find(piece); id >= 0)
      fail("special piece '{}': the vocabulary has it already, as {}", {one_line(piece), id});
    tokenizer = with_added_piece(*tokenizer, piece);
  }
  return tokenizer;
}

void check_size(const char* who, const TrainingOptions& options, size_t least) {
  if (options.vocab < static_cast<int64_t>(least))
    fail("{}: a vocabulary of {} pieces, but {} are needed before the first merge", {who, options.vocab, least});
  if (options.vocab > kMaxPieces) fail("{}: a vocabulary of {} pieces, at most {} are possible", {who, options.vocab, kMaxPieces});
}

}  // namespace ricci
