// Shared by the trainers of vocabularies: the pieces that a vocabulary begins with, and how often each word occurs in a text.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/text.h"
#include "data/tokenizers/training/training.h"
#include "data/tokenizers/vocabulary.h"

namespace ricci {

// A table of words and numbers that copies each word once.
class WordCounter {
 public:
  void add(std::string_view word, int64_t count = 1);
  // Calls use(word, count) for every word, in no order of meaning.
  template <class Use> void for_each(const Use& use) const {
    for (const Slot& slot : slots_)
      if (slot.count > 0) use(text_of(slot), slot.count);
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    uint64_t begin = 0;  // in texts_
    int64_t count = 0;   // 0 in an empty slot
    uint32_t bytes = 0;
  };
  std::string_view text_of(const Slot& slot) const { return std::string_view(texts_).substr(slot.begin, slot.bytes); }
  Slot& place(uint64_t hash, std::string_view word);
  void grow();

  std::vector<Slot> slots_ = std::vector<Slot>(1024);  // a power of two
  size_t used_ = 0;
  std::string texts_;
};

struct CountedWord {
  std::string word;
  int64_t count;
};

// The division of a text: where it may be cut (as Tokenizer::complete_prefix), and the words of a part of it.
struct WordDivision {
  std::function<size_t(std::string_view text)> complete_prefix;
  std::function<void(std::string_view part, int64_t offset, WordCounter& counter)> count;
};

// Counted by all threads, and sorted by the bytes of the words.
std::vector<CountedWord> count_words(const Texts& texts, const WordDivision& division);

// The special pieces that a vocabulary begins with, each once: its kind's, then the requested ones.
std::vector<std::string> special_pieces(const std::vector<std::string>& of_kind, const std::vector<std::string>& asked);

// They are found in texts as they are written; their ids are their places.
std::vector<AddedToken> as_added(const std::vector<std::string>& special);

// Error: a vocabulary of this size has no place for the pieces that it begins with, or is too large.
void check_size(const char* who, const TrainingOptions& options, size_t least);

}  // namespace ricci
