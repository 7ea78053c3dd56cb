// Comments that somebody wrote stay where they were when YAML is written again.
#include "apps/run/config/comments.h"

#include <doctest/doctest.h>

using namespace ricci::apps;

TEST_CASE("comments: comments stay at their keys") {
  const std::string old = "# why\n"
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
  CHECK(with_comments_of(old, yaml) == "# why\n"
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
  CHECK(with_comments_of(with_comments_of(old, yaml), old).find("# words") != std::string::npos);
}

TEST_CASE("comments: comments of keys that are no more are not lost") {
  CHECK(with_comments_of("# of a\na: 1 # behind\nb: 2 # stays\n", "b: 3\n") == "b: 3 # stays\n# of a\n# behind\n");
  CHECK(with_comments_of("model: {d: 3, # inside\n  heads: 2} # behind\n# end\n", "model:\n  d: 3\n  heads: 2\n").find("# inside") !=
        std::string::npos);
}

TEST_CASE("comments: the lines on top, and which of them tell builds and versions") {
  using Lines = std::vector<std::string_view>;
  CHECK(comments_on_top("# a\n#b\nc: 1\n# d\n") == Lines{"# a", "#b"});
  CHECK(comments_on_top("# a") == Lines{"# a"});
  CHECK(comments_on_top("\n# a\n").empty());
  CHECK(comments_on_top("").empty());
  const char* const versions[] = {"# ricci 0.1.0, commit 1a2b3c4d5e, g++ 12.2.0", "# after step 5: ricci 0.1.0, commit 1a2b3c4d5e"};
  const char* const builds[] = {"# commit 1a2b3c4d5e, g++ 12.2.0", "# after step 5: commit 1a2b3c4d5e, g++ 12.2.0"};
  for (const char* line : versions) CHECK((tells_build(line) && tells_version(line)));
  for (const char* line : builds) CHECK((tells_build(line) && !tells_version(line)));
  CHECK_FALSE(tells_build("# my run: ricci 0.1.0"));
  const std::string text = std::string(builds[0]) + "\n# my run\n" + versions[1] + "\na: 1\n" + versions[0] + "\n";
  CHECK(builds_in(text) == std::vector<std::string>{"commit 1a2b3c4d5e, g++ 12.2.0", "after step 5: ricci 0.1.0, commit 1a2b3c4d5e"});
  CHECK(builds_in("a: 1\n").empty());
}
