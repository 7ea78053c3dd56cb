// Comments that somebody wrote into config.yaml stay when the run writes it again.
#include "apps/runs/config_file.h"

#include <doctest/doctest.h>

#include "apps/config/config.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using test_data::contains;

TEST_CASE("config file: comments stay at their keys") {
  const std::string old =
      "# why\n"
      "a: 1  # one\n"
      "\n"
      "# two lines\n"
      "  # about b\n"
      "b: \"# no comment\"   # of b\n"
      "section:\n"
      "  # inside\n"
      "  a: [x, '#'] # list\n"
      "  c: x#y\n"
      "d: \"\\\"#\" \t# tab\n"
      "# last\n"
      "\n"
      "# words\n";
  const std::string yaml = "a: 2\nb: 3\nsection:\n  a: 4\n  c: 5\nd: 6\n";
  CHECK(with_comments_of(old, yaml) ==
        "# why\n"
        "a: 2  # one\n"
        "# two lines\n"
        "  # about b\n"
        "b: 3   # of b\n"
        "section:\n"
        "  # inside\n"
        "  a: 4 # list\n"
        "  c: 5\n"
        "d: 6 \t# tab\n"
        "# last\n"
        "\n"
        "# words\n");
  CHECK(with_comments_of(yaml, yaml) == yaml);
  CHECK(with_comments_of("", yaml) == yaml);
  CHECK(with_comments_of(with_comments_of(old, yaml), old) .find("# words") != std::string::npos);
}

TEST_CASE("config file: comments of keys that are no more are not lost") {
  CHECK(with_comments_of("# of a\na: 1 # behind\nb: 2 # stays\n", "b: 3\n") == "b: 3 # stays\n# of a\n# behind\n");
  CHECK(with_comments_of("model: {d: 3, # inside\n  heads: 2} # behind\n# end\n", "model:\n  d: 3\n  heads: 2\n").find("# inside") != std::string::npos);
}

TEST_CASE("config file: lines about builds on top, once for each that went on") {
  const TrainConfig config = load_config<TrainConfig>("");
  const std::string first = config_file_text(config, "", 0);
  CHECK(first.starts_with("# commit "));
  CHECK(first.substr(first.find('\n') + 1) == to_yaml(config));
  CHECK(config_file_text(config, first, 5) == first);
  const std::string other = "# commit 0000000000, another build\n" + first.substr(first.find('\n') + 1);
  const std::string second = config_file_text(config, other, 5);
  CHECK(second.starts_with("# commit 0000000000, another build\n# after step 5: commit "));
  CHECK(config_file_text(config, second, 7) == second);
  const std::string noted = "# commit 0000000000, another build\n# my own words\nname: run\n";
  const std::string third = config_file_text(config, noted, 5);
  CHECK(third.starts_with("# commit 0000000000, another build\n# after step 5: commit "));
  CHECK(contains(third, "\n# my own words\nname: run\n"));
  CHECK(config_file_text(config, third, 7) == third);
  CHECK(contains(config_file_text(config, "name: run # hand-made\n", 1), "\nname: run # hand-made\n"));
}
