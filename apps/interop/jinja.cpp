// Chat templates in Jinja. Writes our templates, and recognizes published templates by their code. None is executed.
#include <algorithm>
#include <string_view>
#include <vector>

#include "apps/interop/hugging_face.h"
#include "core/json.h"
#include "data/text/utf8.h"

namespace ricci::apps {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// The position of the first {{, {% or {#, or the end.
size_t find_tag(std::string_view jinja) {
  size_t i = jinja.find('{');
  while (i < jinja.size() && jinja.find_first_of("{%#", i + 1) != i + 1) i = jinja.find('{', i + 1);
  return std::min(i, jinja.size());
}

// Reads the code of a tag up to its }} or %}, without blanks and with double quotes. Strings are kept, with \n for line ends.
std::string read_code(std::string_view& jinja) {
  std::string code;
  char quote = '\0';
  for (; !jinja.empty(); jinja.remove_prefix(1)) {
    const char c = jinja[0];
    const bool in_string = quote != '\0', is_quote = in_string ? c == quote : c == '"' || c == '\'';
    if (!in_string && (jinja.starts_with("}}") || jinja.starts_with("%}"))) break;
    if (is_quote) quote = in_string ? '\0' : c;
    if (is_quote) code += '"';
    else if (in_string && c == '\n') code += "\\n";
    else if (in_string || kBlanks.find(c) == kBlanks.npos) code += c;
    if (in_string && c == '\\' && jinja.size() > 1) {
      code += jinja[1];
      jinja.remove_prefix(1);
    }
  }
  return code;
}

// A template without comments and without the blanks that Jinja omits. Adjacent strings are joined, and so are adjacent outputs:
//   {%formessageinmessages%}{{"<|im_start|>"+message["role"]+"\n"+message["content"]}}{%endfor%}
std::string code_of(std::string_view jinja) {
  std::string code;
  bool strips = false;                                // an adjacent tag has a minus
  if (jinja.ends_with('\n')) jinja.remove_suffix(1);  // as Jinja does
  while (!jinja.empty()) {
    const std::string_view text = jinja.substr(0, find_tag(jinja)), tag = jinja.substr(text.size());
    strips = strips || tag.substr(0, 3).ends_with('-');
    const bool ends_statement = text == "\n" && code.ends_with("%}"), is_blank = text.find_first_not_of(kBlanks) == text.npos;
    if (!ends_statement && !(strips && is_blank)) code += text;
    jinja = tag.substr(std::min<size_t>(2, tag.size()));
    if (jinja.starts_with('-')) jinja.remove_prefix(1);
    if (tag.starts_with("{#")) {
      const std::string_view comment = jinja.substr(0, jinja.find("#}"));
      jinja.remove_prefix(comment.size());
      strips = comment.ends_with('-');
    } else {
      std::string inside = read_code(jinja);
      strips = inside.ends_with('-');
      if (strips) inside.pop_back();
      code += std::string(tag.substr(0, 2)) + inside + std::string(jinja.substr(0, 2));
    }
    jinja.remove_prefix(std::min<size_t>(2, jinja.size()));
  }
  for (const std::string member : {"role", "content", "tool_calls", "first", "index0"})
    code = replaced(code, "." + member, "[\"" + member + "\"]");
  return replaced(replaced(code, "}}{{", "+"), "\"+\"", "");
}

// True if the code has this form. Each * in the form matches any code or text.
bool fits(std::string_view code, std::string_view form) {
  size_t star = form.find('*');
  if (star == form.npos) return code == form;
  if (!code.starts_with(form.substr(0, star))) return false;
  code.remove_prefix(star);
  for (form.remove_prefix(star + 1); (star = form.find('*')) != form.npos; form.remove_prefix(star + 1)) {
    const size_t found = code.find(form.substr(0, star));
    if (found == code.npos) return false;
    code.remove_prefix(found + star);
  }
  return code.ends_with(form);
}

// ---- Published templates
struct Published {
  const char* name;
  std::string jinja;   // without the answer
  std::string answer;  // starts an answer
  bool adds_system = false;
};

std::vector<Published> published() {
  const std::string loop = "{% for message in messages %}", end = "{% endfor %}", answer = R"({{ '<|im_start|>assistant\n' }})";
  const std::string message = R"({{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }})";
  const std::string system = R"({{ '<|im_start|>system\n*<|im_end|>\n' }})";
  const std::string qwen25 =
      "{% if tools %}*{% else %}{% if messages[0].role == 'system' %}{{ '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}"
      "{% else %}" +
      system + "{% endif %}{% endif %}" + loop +
      "{% if (message.role == 'user') or (message.role == 'system' and not loop.first)"
      " or (message.role == 'assistant' and not message.tool_calls) %}" +
      message + "{% elif*{% endif %}{% endfor %}";
  const std::string llama3 =
      "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message.role"
      " + '<|end_header_id|>\\n\\n' + message.content | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}"
      "{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}";
  return {{"chatml", loop + message + end, answer},
      {"chatml", loop + "{% if loop.first and messages[0].role != 'system' %}" + system + "{% endif %}" + message + end, answer, true},
      {"chatml", qwen25, answer, true}, {"llama3", llama3, R"({{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }})"}};
}

}  // namespace

KnownTemplate known_template(const std::string& jinja, const std::string& bos_token) {
  const std::string code = code_of(jinja);
  for (const char* const name : {"chatml", "llama3"})
    if (code == code_of(to_jinja(chat_template({name})))) return {name};
  const std::string is_unset = "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}";
  for (const Published& known : published()) {
    if (known.name == std::string("llama3") && bos_token != "<|begin_of_text|>") continue;
    for (const std::string& answer : {std::string(), known.answer, "{% if add_generation_prompt %}" + known.answer + "{% endif %}"})
      for (const std::string& start : {std::string(), is_unset})
        if (fits(code, code_of(start + known.jinja + answer))) return {known.name, known.adds_system};
  }
  return {};
}

std::string to_jinja(const ChatTemplate& form) {
  const auto quoted = [](const std::string& text) { return Json(text).dump(); };
  const auto message = [&](const std::string& text) {
    const size_t place = text.find(kContent);
    return "{{ " + quoted(text.substr(0, place)) + " + message[\"content\"]" + (form.trims ? " | trim" : "") + " + " +
           quoted(text.substr(place + kContent.size())) + " }}";
  };
  return "{{ " + quoted(form.start) + R"( }}{% for message in messages %}{% if message["role"] == "system" %})" + message(form.system) +
         R"({% elif message["role"] == "user" %})" + message(form.user) + R"({% elif message["role"] == "assistant" %})" +
         message(form.assistant) +
         R"({% else %}{{ raise_exception("a role other than system, user and assistant") }}{% endif %}{% endfor %})" +
         "{% if add_generation_prompt %}{{ " + quoted(form.answer) + " }}{% endif %}";
}

}  // namespace ricci::apps
