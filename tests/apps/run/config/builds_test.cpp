// The comments on top of the config.yaml of a run, which tell builds.
#include <doctest/doctest.h>

#include "apps/run/config/config.h"

using namespace ricci::apps;

TEST_CASE("builds: the comments on top, and which of them tell builds and versions") {
  using Lines = std::vector<std::string_view>;
  CHECK(comments_on_top("# a\n#b\nc: 1\n# d\n") == Lines{"# a", "#b"});
  CHECK(comments_on_top("# a") == Lines{"# a"});
  CHECK(comments_on_top("\n# a\n").empty());
  CHECK(comments_on_top("").empty());
  const char* const versions[] = {"# ricci 0.1.0, commit 1a2b3c4d5e, g++ 12.2.0", "# after step 5: ricci 0.1.0, commit 1a2b3c4d5e"};
  const char* const builds[] = {"# commit 1a2b3c4d5e, g++ 12.2.0", "# after step 5: commit 1a2b3c4d5e, g++ 12.2.0"};
  for (const char* line : versions) CHECK((tells_build(line) && has_version(line)));
  for (const char* line : builds) CHECK((tells_build(line) && !has_version(line)));
  CHECK_FALSE(tells_build("# my run: ricci 0.1.0"));
  const std::string text = std::string(builds[0]) + "\n# my run\n" + versions[1] + "\na: 1\n" + versions[0] + "\n";
  CHECK(builds_in(text) == std::vector<std::string>{"commit 1a2b3c4d5e, g++ 12.2.0", "after step 5: ricci 0.1.0, commit 1a2b3c4d5e"});
  CHECK(builds_in("a: 1\n").empty());
}
