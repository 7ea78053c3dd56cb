#include "apps/run/imported_template.h"

#include "core/error.h"
#include "core/files/file.h"
#include "core/json/value.h"

namespace ricci::apps {
namespace {

constexpr const char* kMemberFile = "chat_template.json";

void replace_or_remove(const FilePlace& place, const std::string& text) {
  if (text.empty()) remove_file(place);
  else write_file_atomically(place, text);
}

}  // namespace

std::string ImportedTemplate::text(const std::string& origin) const {
  if (!file.empty() || member.empty()) return file;
  const JsonValue value = parse_json(member, kTemplateMember);
  if (value.is_text()) return value.text();
  const auto reject = [&] {
    fail("{}: {}: expected a text, or a list of objects with a \"name\" and a \"template\"", {origin, kTemplateMember});
  };
  if (!value.is_list()) reject();
  std::string chosen;
  for (const JsonValue& each : value.items()) {
    if (!each["name"].is_text() || !each["template"].is_text()) reject();
    if (&each == &value.items().front() || each["name"].text() == "default") chosen = each["template"].text();
  }
  return chosen;
}

ImportedTemplate read_template(const Folder& run) {
  const FilePlace file(run, kTemplateFile), member(run, kMemberFile);
  ImportedTemplate kept;
  if (OpenFile::find(file)) kept.file = read_text(file);
  if (OpenFile::find(member)) kept.member = parse_json(read_text(member), member.path.c_str())[kTemplateMember].to_json();
  return kept;
}

void write_template(const Folder& run, const ImportedTemplate& kept) {
  replace_or_remove({run, kTemplateFile}, kept.file);
  replace_or_remove({run, kMemberFile}, kept.member.empty() ? "" : "{\"chat_template\": " + kept.member + "}\n");
}

}  // namespace ricci::apps
