// The user's words, and config.yaml of a run that goes on: the keys, the builds, and comments.
#include <doctest/doctest.h>

#include "apps/run/config/config.h"
#include "apps/run/folder/provenance.h"
#include "core/files/file.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

TEST_CASE("said: config.yaml has lines about builds on top, once for each that went on") {
  const TrainConfig config = load_config<TrainConfig>("");
  const std::string keys = to_yaml(config), first = config_file_text(config, "", "", 0);
  CHECK(first.starts_with("# ricci 0."));
  CHECK(contains(first.substr(0, first.find('\n')), ", commit "));
  CHECK(first.substr(first.find('\n') + 1) == keys);
  CHECK(config_file_text(config, first, keys, 5) == first);
  const std::string other = "# commit 0000000000, another build\n" + keys, second = config_file_text(config, other, keys, 5);
  CHECK(second.starts_with("# commit 0000000000, another build\n# after step 5: ricci 0."));
  CHECK(second.ends_with("\n" + keys));
  CHECK(config_file_text(config, second, keys, 7) == second);
  const std::string noted = "# commit 0000000000, another build\n# my own words\n" + keys + "# the end\n";
  const std::string third = config_file_text(config, noted, keys, 5);
  CHECK(third.starts_with("# commit 0000000000, another build\n# after step 5: ricci 0."));
  CHECK(third.ends_with("\n# my own words\n" + keys + "# the end\n"));
  CHECK(config_file_text(config, third, keys, 7) == third);
}

TEST_CASE("said: a config.yaml that somebody edited is kept where its keys change") {
  const ScratchFolder scratch;
  const Folder folder(scratch.path());
  TrainConfig config = load_config<TrainConfig>("");
  write_config(folder, config, "", 0);
  const std::string keys = to_yaml(config), noted = read_text(scratch / "config.yaml") + "# mine\n";
  write_file_atomically(FilePlace(scratch / "config.yaml"), noted);
  write_config(folder, config, keys, 3);
  CHECK(read_text(scratch / "config.yaml") == noted);
  CHECK_FALSE(OpenFile::find(FilePlace(scratch / "config.edited.yaml")));
  config.steps = 9;
  write_config(folder, config, keys, 3);
  CHECK(contains(read_text(scratch / "config.yaml"), "\nsteps: 9\n"));
  CHECK(read_text(scratch / "config.edited.yaml") == noted);
}

TEST_CASE("said: the run file byte for byte, and the command line") {
  const ScratchFolder scratch;
  const Folder folder(scratch.path());
  const std::string yaml = "lr: 1e-2 # \xff, not UTF-8\r\n\n  \t#\n";
  write_said(folder, {yaml, {"model.layers=6", "~lr", "sample.prompt=\"a\\n\"", "name=a b\n"}});
  CHECK(read_text(scratch / "run.yaml") == yaml);
  const std::string head = "# the keys of the command line, in its order; beside it the run file, as it was given: run.yaml\n";
  const std::string list = "- \"model.layers=6\"\n- \"~lr\"\n- \"sample.prompt=\\\"a\\\\n\\\"\"\n- \"name=a b\\n\"\n";
  CHECK(read_text(scratch / "overrides.yaml") == head + list);
  write_said(folder, {{}, {"steps=9"}, true});  // it goes on by its folder
  CHECK(read_text(scratch / "run.yaml") == yaml);
  CHECK(read_text(scratch / "overrides.yaml") == head + list + "- \"steps=9\"\n");
  write_said(folder, {});
  CHECK_FALSE(OpenFile::find(FilePlace(scratch / "run.yaml")));
  CHECK_FALSE(OpenFile::find(FilePlace(scratch / "overrides.yaml")));
}
