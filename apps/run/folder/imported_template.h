// The template of conversations that an imported model came with, in Jinja. It is not run: markers in it name one of ours (the key
// `chat`), the run keeps it, and an export writes it back as it was.
#pragma once
#include <string>

#include "core/files/folder.h"

namespace ricci::apps {

struct ImportedTemplate {
  std::string file = {};    // chat_template.jinja, byte for byte
  std::string member = {};  // chat_template of an older tokenizer_config.json, as JSON: a text, or a list of {"name", "template"}

  bool empty() const { return file.empty() && member.empty(); }
  // The template that is used where none is asked for by its name: the file, else the member, in a list the one named default or else the
  // first, as in transformers. Returns an empty text where there is none. Error: the member, which is from `origin`, is neither text nor
  // such a list.
  std::string text(const std::string& origin) const;
};

inline constexpr const char *kTemplateFile = "chat_template.jinja", *kTemplateMember = "chat_template";

// In a run folder they are chat_template.jinja and chat_template.json, an object with the member. Errors: as for reading; not such JSON.
ImportedTemplate read_template(const Folder& run);
// Removes what another import left where one of them is empty.
void write_template(const Folder& run, const ImportedTemplate& kept);

}  // namespace ricci::apps
