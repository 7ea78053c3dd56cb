#include "apps/run/folder/config_file.h"

#include <algorithm>
#include <string_view>

#include "apps/run/config/comments.h"
#include "apps/run/config/config.h"
#include "apps/run/folder/build_info.h"
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/error.h"

namespace ricci::apps {

std::string config_file_text(const TrainConfig& config, const std::string& old_text, int64_t step) {
  const std::string build = format_message("{}, device {} ({}), threads {}, seed {}",
      {build_info(), name_of(config.device), name_of(cpu_isa()), thread_count(), std::to_string(config.seed)});
  // Comments that somebody wrote between the lines about builds, or behind them, stay there.
  std::string head, after_builds;
  std::string_view rest = old_text, newest;
  for (const std::string_view line : comments_on_top(old_text)) {
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    after_builds.append(line) += '\n';
    if (!tells_build(line)) continue;
    newest = line;
    head += after_builds;
    after_builds.clear();
  }
  if (newest.empty()) head = "# " + build + "\n";
  if (!newest.empty() && !newest.ends_with(" " + build)) head += format_message("# after step {}: {}\n", {step, build});
  return head + after_builds + with_comments_of(std::string(rest), to_yaml(config));
}

}  // namespace ricci::apps
