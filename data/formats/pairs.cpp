// A prompt and its answer per line: {"prompt": "cab", "answer": "abc"}. A model learns the answer and its end. The two texts are encoded
// separately, so the ids of a prompt do not depend on its answer.
#include "core/error.h"
#include "core/json.h"
#include "data/formats/formats.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {
namespace {

constexpr JsonLimits kPairLimits = {.bytes = 64 << 20, .depth = 64, .values = 1 << 20};

// Returns the prompt and the answer. Other members of the line are ignored.
std::vector<std::string> pair_texts(std::string_view line) {
  const Json object = parse_json(line, "JSON", kPairLimits);
  const Json &prompt = member(object, "prompt"), &answer = member(object, "answer");
  if (!prompt.is_string() || !answer.is_string()) fail("expected an object with the string members \"prompt\" and \"answer\"");
  return {prompt.get<std::string>(), answer.get<std::string>()};
}

DocumentEncoder pair_encoder(const std::shared_ptr<const Tokenizer>& tokenizer, const DocumentOptions&) {
  return [tokenizer](std::string_view line) {
    const std::vector<std::string> texts = pair_texts(line);
    const std::string &prompt = texts[0], &answer = texts[1];
    EncodedDocument pair{tokenizer->encode_start(prompt)};
    pair.counts.resize(pair.ids.size(), false);
    tokenizer->append_ids(answer, 0, pair.ids);
    tokenizer->append_end(answer, pair.ids);
    pair.counts.resize(pair.ids.size(), true);
    return pair;
  };
}

}  // namespace

const FormatTraits kPairs{.name = "pairs", .lines = "a prompt and its answer per line", .encoder = pair_encoder, .texts = pair_texts};

}  // namespace ricci
