#include <doctest/doctest.h>

#include "apps/run/init/init.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

Model small() {
  ModelConfig c;
  c.vocab = 11, c.ctx = 6, c.d = 8, c.layers = 12, c.settings<Sdp>().heads = 2;
  apply_preset(c);
  resolve(c);
  return Model(c);
}

// The paths that are frozen.
std::vector<std::string> frozen(const std::vector<std::string>& patterns) {
  Model model = small();
  freeze_parameters(model, patterns);
  std::vector<std::string> paths;
  model.each_parameter([&](const std::string& path, const Parameter& p) {
    if (p.frozen) paths.push_back(path);
  });
  return paths;
}

}  // namespace

TEST_CASE("freeze: whole paths, beginnings up to a dot, and asterisks") {
  using Paths = std::vector<std::string>;
  CHECK(frozen({}) == Paths{});
  CHECK(frozen({"tok"}) == Paths{"tok.weight"});
  CHECK(frozen({"blocks.1.fc.bias"}) == Paths{"blocks.1.fc.bias"});
  CHECK(frozen({"blocks.1.ln1", "pos.weight"}) == Paths{"pos.weight", "blocks.1.ln1.weight", "blocks.1.ln1.bias"});  // none of block 11
  CHECK(frozen({"blocks.*.fc.weight"}).size() == 12);
  CHECK(frozen({"blocks.*"}) == frozen({"blocks"}));
  CHECK(frozen({"*.weight"}) == Paths{"tok.weight", "pos.weight", "ln_f.weight"});
}

TEST_CASE("freeze: what fits nothing, and what leaves nothing") {
  CHECK(error_of([] { frozen({"tok", "blocks.12"}); }).starts_with("freeze: 'blocks.12' fits no parameter, the nearest is 'blocks.1"));
  CHECK(error_of([] { frozen({"block"}); }) == "freeze: 'block' fits no parameter, the nearest is 'blocks'");
  CHECK(error_of([] { frozen({""}); }).starts_with("freeze: '' fits no parameter"));
  CHECK(error_of([] { frozen({"*"}); }) == "freeze: no parameter is left to train");
}
