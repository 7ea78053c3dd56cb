// The words of a text with their counts: a vocabulary is learnt from these, because far fewer words than characters differ.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/text.h"
#include "data/tokenizers/tokenizer.h"

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

// Counts the words of a part of a text, which starts at this byte of it.
using CountPart = std::function<void(std::string_view part, int64_t offset, WordCounter& counter)>;

// Counted by all threads, and sorted by the bytes of the words. A text is cut into parts where the tokenizer allows it.
std::vector<CountedWord> count_words(const Texts& texts, const Tokenizer& tokenizer, const CountPart& count_part);

}  // namespace ricci
