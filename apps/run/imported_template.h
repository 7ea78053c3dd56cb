// The Jinja chat template of an imported model. Its markers select one of our templates (the key `chat`). An export writes the Jinja
// template back.
#pragma once
#include <string>

#include "core/files/file.h"
#include "core/json.h"

namespace ricci::apps {

struct ImportedTemplate {
  std::string file = {};    // chat_template.jinja, byte for byte
  std::string member = {};  // chat_template of an older tokenizer_config.json, as JSON: a text, or a list of {"name", "template"}
  bool empty() const { return file.empty() && member.empty(); }
};
inline constexpr const char *kTemplateFile = "chat_template.jinja", *kMemberFile = "chat_template.json", *kTemplateMember = "chat_template";

// Errors: a file is unreadable, or is not JSON in this form.
inline ImportedTemplate read_template(const std::string& run_folder) {
  const std::string path = run_folder + "/" + kMemberFile;
  ImportedTemplate kept = {.file = find_text(run_folder + "/" + kTemplateFile).value_or("")};
  if (const auto text = find_text(path)) kept.member = to_text(member(parse_json(*text, path), kTemplateMember));
  return kept;
}

}  // namespace ricci::apps
