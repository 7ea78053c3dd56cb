// A text of YAML as a tree, bounded in time, depth and memory whatever the text is.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ricci::apps {

inline constexpr int64_t kMaxYaml = 256 << 10;  // bytes
inline constexpr int kDeepestYaml = 32;         // lists and mappings inside each other

struct YamlValue {
  enum class Kind : uint8_t { nothing, text, list, keys };
  Kind kind = Kind::nothing;
  std::string text = {};              // numbers are texts, too
  std::vector<YamlValue> items = {};  // of a list; of keys: a key, its value, the next key, ...
  int64_t line = 1;                   // where it starts
};

// The document of a text, nothing where the text is empty. `source` stands in front of errors, with a line where the text has
// lines. Errors: not YAML, more than one document, too long, nested too deeply, too many values.
YamlValue parse_yaml(const std::string& text, const std::string& source, bool has_lines);

}  // namespace ricci::apps
