// The key that somebody may have meant.
#pragma once
#include <string>
#include <vector>

#include "apps/run/config/config.h"

namespace ricci::apps {

// What to say behind an unknown key: how it is called here (apps/run/config/other_names.h), or which known key or section is near. One in
// another section is as near as one wrong letter. Of two that are equally near neither is told: "; --help-config prints every key".
std::string suggestion_for(const std::string& key, const std::vector<Field>& fields);

}  // namespace ricci::apps
