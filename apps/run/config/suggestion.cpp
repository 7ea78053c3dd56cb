#include "apps/run/config/suggestion.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "apps/run/config/nearest.h"
#include "apps/run/config/other_names.h"
#include "core/error.h"

namespace ricci::apps {
namespace {

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

}  // namespace

std::string suggestion_for(const std::string& key, const std::vector<Field>& fields) {
  const std::string start = key.substr(0, 100);
  if (const std::string_view here = own_name(last_part(start)); !here.empty()) return format_message(", here it is '{}'", {here});
  size_t least = SIZE_MAX;
  std::string best;
  bool is_best = false;  // no other is as near
  const auto weigh = [&](size_t distance, std::string_view known) {
    if (distance < least) least = distance, best = known, is_best = true;
    else if (distance == least && known != best) is_best = false;
  };
  const auto consider = [&](const std::string& known) {
    weigh(std::min(edit_distance(start, known), edit_distance(last_part(start), last_part(known)) + 1), known);
  };
  for (const OtherName& name : kOtherNames) weigh(edit_distance(last_part(start), name.there) + 1, name.here);
  for (const Field& field : fields) {
    consider(field.key);
    if (const size_t dot = field.key.find('.'); dot != field.key.npos) consider(field.key.substr(0, dot));
  }
  const bool moved = last_part(start) == last_part(best);
  if (is_best && (moved || is_near(least, last_part(start).size()))) return format_message(", the nearest known key is '{}'", {best});
  return "; --help-config prints every key";
}

}  // namespace ricci::apps
