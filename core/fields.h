// The keys of a config struct: one function lists each member once, with its key, its description and its bounds. The defaults are in the
// struct. Reading, printing, checking, comparing and --help-config all use this list:
//   inline void visit_fields(SdpConfig& c, const Fields& field) {
//     field("heads", c.heads, "attention heads (a divisor of d)").in(1, kLargestSize);
//   }
// when() is for keys that only some choices use:
//   visit_fields(c.sdp, field.when(c.mixer == MixerKind::sdp, "mixer: sdp"));
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/choice.h"

namespace ricci {

// Integers from lo to hi - 1, written "lo:hi" in run files.
struct Range {
  int64_t lo = 0, hi = 0;
  bool operator==(const Range&) const = default;
};

// Numbers by name, in the order of the run file: {tok: 0.1, head: 2}.
using NamedNumbers = std::vector<std::pair<std::string, double>>;

// A member of an enum type with names (core/choice.h), as the index of its name.
struct ChoiceMember {
  uint8_t* number;
  std::vector<const char*> names;
};

struct ChoiceListMember {
  std::vector<uint8_t>* numbers;
  std::vector<const char*> names;
};

// A member of a config. In a run file, a single value means a list of this value, and null means an empty list, mapping or optional. Ranges
// are "0:8, 8:256" or [[0, 8], [8, 256]].
using FieldValue = std::variant<bool*, int64_t*, uint64_t*, double*, std::string*, std::optional<int64_t>*, std::optional<bool>*,
    std::vector<std::string>*, std::vector<double>*, std::vector<int64_t>*, std::vector<Range>*, NamedNumbers*, ChoiceMember,
    ChoiceListMember>;

template <Choice E> FieldValue field_value(ChoiceList<E>& member) {
  const auto names = choices(E{});
  return ChoiceListMember{&member.numbers, {names.begin(), names.end()}};
}
template <class Member> FieldValue field_value(Member& member) {
  if constexpr (Choice<Member>) {
    const auto names = choices(Member{});
    return ChoiceMember{reinterpret_cast<uint8_t*>(&member), {names.begin(), names.end()}};
  } else {
    return &member;
  }
}

// The numbers that a key allows; for a list or mapping, the bounds of each number.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool has_low = true, has_high = true;  // true: the bound itself is allowed
};

struct Field {
  std::string key = {};  // dotted
  FieldValue value = {};
  const char* description = "";
  const char* group = "";                            // the task that the key belongs to; a heading of --help-config
  std::string by = {};                               // the choice that uses the key: "mixer: sdp"; empty if all choices use it
  bool is_read = true;                               // true if the current config uses this key
  bool is_deciding = false;                          // stored first; other keys and their defaults depend on it
  bool is_free = false;                              // a resumed run can change the value
  bool follows_choices = false;                      // a preset or a family gives the key's default; null in a run file means that default
  bool (*names_file)(const std::string&) = nullptr;  // true for values that are paths; in a run file, paths are relative to its folder
  Bounds bounds = {};

  template <class T> Field& with(T Field::*member, const T& value) {
    this->*member = value;
    return *this;
  }
  Field& decides() { return with(&Field::is_deciding, true); }
  Field& may_change() { return with(&Field::is_free, true); }
  Field& follows() { return with(&Field::follows_choices, true); }
  Field& file(bool (*names)(const std::string&)) { return with(&Field::names_file, names); }
  Field& within(const Bounds& allowed) { return with(&Field::bounds, allowed); }
  Field& at_least(int64_t low) { return within({.low = static_cast<double>(low)}); }
  Field& in(int64_t low, int64_t high) { return within({static_cast<double>(low), static_cast<double>(high)}); }
  Field& positive() { return within({.low = 0, .has_low = false}); }
  Field& below_one() { return within({.low = 0, .high = 1, .has_high = false}); }
};

// Appends keys to a list. The members must outlive the list. Each function below returns a copy that gives its keys one more property.
class Fields {
 public:
  explicit Fields(std::vector<Field>& all) : all_(&all) {}

  template <class Member> Field& operator()(const char* key, Member& member, const char* description) const {
    Field& field = all_->emplace_back(first_);
    field.key += key;
    return field.with(&Field::value, field_value(member)).with(&Field::description, description);
  }
  // For keys that only some choices use; `by` names the choices.
  Fields when(bool is_read, const std::string& by) const { return with(&Field::is_read, first_.is_read && is_read).with(&Field::by, by); }
  // For the keys of a section: their names start with "NAME.".
  Fields section(const char* name) const { return with(&Field::key, first_.key + name + "."); }
  // For the keys of a task, such as "optimizer".
  Fields group(const char* name) const { return with(&Field::group, name); }
  // For keys that can change when a run resumes.
  Fields free_to_change() const { return with(&Field::is_free, true); }

 private:
  template <class T> Fields with(T Field::*member, const T& value) const {
    Fields changed = *this;
    changed.first_.with(member, value);
    return changed;
  }

  std::vector<Field>* all_;
  Field first_ = {};  // the properties of every new key; its `key` is the prefix
};

// All keys of a config struct, used or not, in the order of its visit_fields().
template <class Config> std::vector<Field> fields_of(Config& config) {
  std::vector<Field> fields;
  visit_fields(config, Fields(fields));
  return fields;
}

template <class F> void each_path(const Field& field, const F& f) {
  const auto visit = [&](std::string& text) {
    if (field.names_file && field.names_file(text)) f(text);
  };
  if (std::string* const* const text = std::get_if<std::string*>(&field.value)) visit(**text);
  if (std::vector<std::string>* const* const texts = std::get_if<std::vector<std::string>*>(&field.value))
    for (std::string& text : **texts) visit(text);
}

// Error: the first number outside its bounds, for example "model.heads: 0, expected 1 or more".
void check_bounds(const std::vector<Field>& fields);

}  // namespace ricci
