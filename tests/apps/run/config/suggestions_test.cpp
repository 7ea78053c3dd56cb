// Suggestions in the place of an unknown key.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "apps/run/config/config.h"
#include "apps/run/config/train_config.h"
#include "core/error.h"
#include "tests/data/files.h"
#include "tests/sanitized.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

std::string complaint(const std::string& assignment) {
  return error_of([&] { load_config<TrainConfig>("", {assignment}); });
}

// The key that a complaint about an unknown one suggests; empty: none.
std::string suggested(const std::string& message) {
  const size_t end = message.rfind('\''), begin = message.rfind('\'', end - 1) + 1;
  return contains(message, "; --help-config") ? "" : message.substr(begin, end - begin);
}

}  // namespace

TEST_CASE("config: names of nanoGPT and transformers are known, and lead to keys that there are") {
  TrainConfig config;
  const std::vector<Field> fields = fields_of(config);
  for (const auto& [here, names] : other_names())
    for (const std::string_view there : names) {
      CAPTURE(there);
      const auto has_key = [&](std::string_view key) {
        return std::any_of(fields.begin(), fields.end(), [&](const Field& field) { return field.key == key; });
      };
      CHECK((has_key(here) && !has_key(there)));
      CHECK(suggested(complaint(std::string(there) + "=1")) == here);
      if (const std::string inside = "model." + std::string(there); inside != here) CHECK(suggested(complaint(inside + "=1")) == here);
    }
  CHECK(complaint("n_layer=6") == "command line: unknown key 'n_layer', here it is 'model.layers'");
}

TEST_CASE("config: a word for what there is not leads to no key") {
  for (const char* const word : {"epochs", "num_epochs", "num_train_epochs", "always_save_checkpoint", "compile", "backend", "wandb_log",
           "wandb_project", "eval_only", "num_workers", "fp16", "local_rank", "resume", "verbose", "momentum_decay", "temperature_schedule",
           "cache_dir", "report_to"}) {
    CAPTURE(word);
    CHECK(suggested(complaint(std::string(word) + "=1")) == "");
  }
}

TEST_CASE("config: a key with one letter wrong leads to that key or to none") {
  TrainConfig config;
  const std::vector<Field> fields = fields_of(config);
  std::set<std::string> known;
  for (const Field& field : fields) known.insert(field.key);
  int64_t right = 0, none = 0, wrong = 0;
  const std::string letters = test::kSanitized ? "q" : "aekqtx_2";
  for (const std::string& key : known) {
    for (size_t at = key.rfind('.') + 1; at < key.size(); ++at)
      for (const char letter : letters) {
        std::string typed = key;
        typed[at] = letter;
        const std::string last = typed.substr(typed.rfind('.') + 1);
        const auto has_last = [&](const OtherNames& names) { return std::count(names.there.begin(), names.there.end(), last) > 0; };
        if (known.contains(typed) || std::any_of(other_names().begin(), other_names().end(), has_last)) continue;
        const std::string hint = suggested(complaint(typed + "=1"));
        right += hint == key, none += hint.empty(), wrong += hint != key && !hint.empty();
        if (hint != key && !hint.empty()) MESSAGE(typed << " -> " << hint);
      }
  }
  CHECK(wrong == 0);
  CHECK(right > 20 * none);
}
