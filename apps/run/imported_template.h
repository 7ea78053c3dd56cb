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
  // The template that transformers uses if none is asked for by its name: the file, else the member. A list has one named default, or its
  // first counts. Returns an empty text where there is none. Error: the member, which is from `origin`, is neither text nor such a list.
  std::string text(const std::string& origin) const;
};

inline constexpr const char *kTemplateFile = "chat_template.jinja", *kTemplateMember = "chat_template";

// Reads both from a run folder: chat_template.jinja, and chat_template.json, an object with the member. Errors: unreadable, or other JSON.
ImportedTemplate read_template(const Folder& run);
// Writes these files. Where one of them is empty, the file that another import left is removed.
void write_template(const Folder& run, const ImportedTemplate& kept);

}  // namespace ricci::apps
