// ricci-generate: continues a prompt with a trained model.
#include <cstdio>

#include "apps/terminal/model_options.h"
#include "core/error.h"
#include "models/decoding/sampling.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  ModelOptions model;
  std::string prompt = "\n";
  int64_t tokens = 200;
  Sampling sampling;
};

int generate_text(const Options& options) {
  check(options.sampling);
  const auto [device, run, model, context] = open_model(options.model);
  const auto prompt = run.tokenizer()->encode(options.prompt);
  if (prompt.empty()) fail("--prompt: has no tokens for the {} tokenizer", {run.tokenizer()->name()});
  if (const std::string note = run.context_note(context); !note.empty())
    std::fputs(format_message("context {}{}\n", {context, note}).c_str(), stderr);
  DecodeState written = run.tokenizer()->state_behind(prompt);
  const auto print = [](const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  print(options.prompt);
  const auto use = [&, tokenizer = run.tokenizer()](int64_t token) {
    print(tokenizer->decode_next(token, written));
    return true;
  };
  generate(model, prompt, options.tokens, options.sampling, device, use, context);
  print(run.tokenizer()->decode_end(written) + "\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_app(argc, argv, {"ricci-generate", "Continues a prompt with a trained model."},
                 [&](CLI::App& app) {
                   app.add_option("--prompt", options.prompt, "Text to continue");
                   app.add_option("--tokens", options.tokens, "Tokens to write")->check(at_least_zero)->capture_default_str();
                   add_field_options(app, options.sampling);
                   add_model_options(app, options.model, "Tokens that the next one is drawn from");
                 },
                 [&] { return generate_text(options); });
}
