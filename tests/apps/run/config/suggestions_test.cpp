// What is suggested in the place of an unknown key.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "apps/run/config/config.h"
#include "apps/run/config/nearest.h"
#include "apps/run/config/train_config.h"
#include "core/error.h"
#include "tests/data/files.h"

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
  for (const OtherName& name : other_names()) {
    CAPTURE(name.there);
    const auto is_here = [&](const Field& field) { return field.key == name.here; };
    CHECK(std::any_of(fields.begin(), fields.end(), is_here));
    const auto is_same = [&](const Field& field) { return field.key == name.there; };
    CHECK(std::none_of(fields.begin(), fields.end(), is_same));
    CHECK(suggested(complaint(std::string(name.there) + "=1")) == name.here);
    if (const std::string inside = "model." + std::string(name.there); inside != name.here)
      CHECK(suggested(complaint(inside + "=1")) == name.here);
  }
  CHECK(complaint("n_layer=6") == "command line: unknown key 'n_layer', here it is 'model.layers'");
}

TEST_CASE("config: a word for what there is not leads to no key") {
  for (const char* const word : {"epochs", "num_epochs", "num_train_epochs", "always_save_checkpoint", "compile", "backend", "wandb_log",
           "wandb_project", "eval_only", "num_workers", "fp16", "local_rank", "resume", "verbose", "momentum_decay", "temperature_schedule",
           "cache_dir", "report_to", "rope_theta"}) {
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
  for (const std::string& key : known) {
    for (size_t at = key.rfind('.') + 1; at < key.size(); ++at)
      for (const char letter : {'a', 'e', 'k', 'q', 't', 'x', '_', '2'}) {
        std::string typed = key;
        typed[at] = letter;
        const std::string last = typed.substr(typed.rfind('.') + 1);
        const auto is_last = [&](const OtherName& name) { return name.there == last; };
        if (known.contains(typed) || std::any_of(other_names().begin(), other_names().end(), is_last)) continue;
        const std::string hint = suggested(complaint(typed + "=1"));
        right += hint == key, none += hint.empty(), wrong += hint != key && !hint.empty();
        if (hint != key && !hint.empty()) MESSAGE(typed << " -> " << hint);
      }
  }
  CHECK(wrong == 0);
  CHECK(right > 20 * none);
}
