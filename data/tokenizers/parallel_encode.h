// Long texts encoded by all threads.
#pragma once
#include <functional>

#include "data/text/text_source.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

// What tokenizer.append_ids does, on all threads where the text is long. The ids do not depend on the number of threads: the text
// is cut where the tokenizer says that both sides encode on their own.
void append_ids_in_parallel(const Tokenizer& tokenizer, std::string_view text, int64_t offset, std::vector<int64_t>& ids);

// Calls use(ids, bytes) with the ids of the text in their order, some of them at a time, and the bytes they stand for. At the
// end come the ids that mark the end of a document, for no bytes. Errors name the text.
void for_each_ids(
    const TextSource& text, const Tokenizer& tokenizer, const std::function<void(std::span<const int64_t> ids, int64_t bytes)>& use);

}  // namespace ricci
