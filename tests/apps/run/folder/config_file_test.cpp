// config.yaml of a run that goes on: the keys, the builds, and the comments that somebody wrote.
#include "apps/run/folder/config_file.h"

#include <doctest/doctest.h>

#include "apps/run/config/config.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using test_data::contains;

TEST_CASE("config file: lines about builds on top, once for each that went on") {
  const TrainConfig config = load_config<TrainConfig>("");
  const std::string first = config_file_text(config, "", 0);
  CHECK(first.starts_with("# ricci 0."));
  CHECK(contains(first.substr(0, first.find('\n')), ", commit "));
  CHECK(first.substr(first.find('\n') + 1) == to_yaml(config));
  CHECK(config_file_text(config, first, 5) == first);
  const std::string other = "# commit 0000000000, another build\n" + first.substr(first.find('\n') + 1);
  const std::string second = config_file_text(config, other, 5);
  CHECK(second.starts_with("# commit 0000000000, another build\n# after step 5: ricci 0."));
  CHECK(config_file_text(config, second, 7) == second);
  const std::string noted = "# commit 0000000000, another build\n# my own words\nname: run\n";
  const std::string third = config_file_text(config, noted, 5);
  CHECK(third.starts_with("# commit 0000000000, another build\n# after step 5: ricci 0."));
  CHECK(contains(third, "\n# my own words\nname: run\n"));
  CHECK(config_file_text(config, third, 7) == third);
  CHECK(contains(config_file_text(config, "name: run # hand-made\n", 1), "\nname: run # hand-made\n"));
}
