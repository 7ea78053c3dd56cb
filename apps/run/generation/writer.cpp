#include "apps/run/generation/writer.h"

#include "core/error.h"
#include "core/json/value.h"
#include "data/text/utf8.h"

namespace ricci::apps {
namespace {

// One text while it is made.
struct Writing {
  DecodeState decoding;
  StopStrings stops;
  Written written;

  // Returns what this piece adds to the text.
  std::string add(const std::string& piece) {
    const std::string text = stops.next(piece);
    written.text += text;
    written.stopped = stops.met();
    return text;
  }
  std::string end(const Tokenizer& tokenizer) {
    std::string text = add(tokenizer.decode_end(decoding));
    const std::string held = stops.end();
    written.text += held;
    return text + held;
  }
};

}  // namespace

std::vector<int64_t> prompt_ids(const Tokenizer& tokenizer, const std::string& prompt) {
  std::vector<int64_t> ids = tokenizer.encode(prompt);
  if (ids.empty()) fail("the prompt '{}' has no tokens for the {} tokenizer", {one_line(prompt), tokenizer.name()});
  return ids;
}

std::vector<Written> write_texts(const OpenModel& open, const std::string& prompt, const WritingOptions& options,
    const std::function<void(const std::string& piece)>& show) {
  check_samples(options.samples);
  const Tokenizer& tokenizer = *open.run.tokenizer();
  const std::vector<int64_t> ids = prompt_ids(tokenizer, prompt);
  std::vector<Writing> writings(static_cast<size_t>(options.samples), {tokenizer.state_behind(ids), StopStrings(options.stops), {}});
  const auto use = [&](int64_t sample, int64_t token) {
    Writing& writing = writings[static_cast<size_t>(sample)];
    ++writing.written.tokens;
    const std::string text = writing.add(tokenizer.decode_next(token, writing.decoding));
    if (sample == 0 && !text.empty()) show(text);
    return !writing.stops.met();
  };
  generate_samples(open.model, ids, options.samples, options.tokens, options.sampling, open.device, use, open.context);
  std::vector<Written> all;
  for (Writing& writing : writings) {
    const std::string last = writing.end(tokenizer);
    if (all.empty() && !last.empty()) show(last);
    all.push_back(writing.written);
  }
  return all;
}

std::string json_of(const std::string& prompt, int64_t sample, const Written& written) {
  const auto quoted = [](const std::string& text) { return quoted_json(replace_invalid_utf8(text), true); };
  return R"({"prompt": )" + quoted(prompt) + R"(, "sample": )" + std::to_string(sample) + R"(, "text": )" + quoted(written.text) +
         R"(, "tokens": )" + std::to_string(written.tokens) + R"(, "end": ")" + (written.stopped ? "stop" : "length") + "\"}";
}

}  // namespace ricci::apps
