// How a config struct lists its keys: a function that names each member once, with its description. KeyInfo, printing,
// comparing and --help-config all walk over that list, so that it stands in one place, beside the struct:
//   template <std::same_as<SdpConfig> Config, class Field> void visit_fields(Config& c, Field&& field) {
//     field("heads", c.heads, "attention heads; they divide d");
//   }
// Where a key means something to some choices only, its struct is visited through read_when():
//   visit_fields(c.sdp, read_when(field, c.mixer == MixerKind::sdp, "mixer: sdp"));
#pragma once
#include <string>
#include <utility>

namespace ricci {

struct KeyInfo {
  bool is_read = true;      // the config as it stands reads the key
  std::string by{};         // the choice that reads it: "mixer: sdp"; empty: every choice
  bool decides = false;     // other keys and their defaults depend on this one, so that it is stored first
  bool may_change = false;  // a run may go on with another value: what is trained does not depend on it
  bool (*names_file)(
      const std::string&) = nullptr;  // whether a value of this key is a path. In a run file it is looked for beside that file first
};

inline KeyInfo decides() { return {.decides = true}; }
inline KeyInfo may_change() { return {.may_change = true}; }

template <class Field> class ReadWhen {
 public:
  ReadWhen(Field& field, bool is_read, std::string by) : field_(field), is_read_(is_read), by_(std::move(by)) {}

  template <class Member> void operator()(const char* key, Member& member, const char* description, KeyInfo inner = {}) {
    inner.is_read = inner.is_read && is_read_;
    if (inner.by.empty()) inner.by = by_;
    field_(key, member, description, inner);
  }

 private:
  Field& field_;
  bool is_read_;
  std::string by_;
};

template <class Field> ReadWhen<Field> read_when(Field& field, bool is_read, std::string by) { return {field, is_read, std::move(by)}; }

}  // namespace ricci
