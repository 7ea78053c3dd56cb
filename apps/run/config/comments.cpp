#include "apps/run/config/comments.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <string_view>

namespace ricci::apps {
namespace {

struct Line {
  size_t indent = 0;
  std::string key;      // empty: no key stands at its start
  std::string comment;  // with its #, and the blanks before it where a value stands before it
};

// Where the comment of a line starts, at a # after a blank and outside of quotes; npos where there is none.
size_t comment_start(std::string_view line) {
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == '"' && c == '\\') ++i;
    else if (quote) quote = c == quote ? 0 : quote;
    else if ((c == '"' || c == '\'') && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '[' || line[i - 1] == ',')) quote = c;
    else if (c == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) return i;
  }
  return line.npos;
}

Line parse(const std::string& text) {
  Line line;
  const size_t start = text.find_first_not_of(" \t");
  if (start == text.npos) return line;
  line.indent = start;
  size_t comment = comment_start(text);
  const size_t end = comment == text.npos ? text.size() : comment;
  const size_t colon = text.find(':', start);
  if (colon < end) line.key = text.substr(start, colon - start);
  while (comment != text.npos && comment > start && (text[comment - 1] == ' ' || text[comment - 1] == '\t')) --comment;
  if (comment != text.npos) line.comment = text.substr(comment);
  return line;
}

// The dotted key of each line, for keys in sections of one level: what an indented key belongs to stands before it.
class Section {
 public:
  std::string key_of(const Line& line) {
    if (line.indent == 0) section_ = line.key;
    return line.indent == 0 ? line.key : section_ + "." + line.key;
  }

 private:
  std::string section_;
};

struct Comments {
  std::map<std::string, std::string> before, behind;  // by dotted key
  std::string last;
};

Comments comments_of(const std::string& text) {
  Comments comments;
  Section section;
  std::istringstream lines(text);
  std::string waiting, previous;  // comment lines that wait for a key; the key before them
  for (std::string each; std::getline(lines, each);) {
    const Line line = parse(each);
    if (line.key.empty() && each.find_first_not_of(" \t") == each.npos) {
      if (!waiting.empty()) waiting += "\n";
      continue;
    }
    const bool whole = line.key.empty() && !line.comment.empty() && each.find_first_not_of(" \t") == each.find('#');
    if (whole) {
      waiting += each + "\n";
      continue;
    }
    if (!line.key.empty()) previous = section.key_of(line);
    comments.before[previous] += waiting;
    comments.behind[previous] += line.comment;
    waiting.clear();
  }
  comments.last = waiting;
  return comments;
}

}  // namespace

std::vector<std::string_view> comments_on_top(std::string_view text) {
  std::vector<std::string_view> lines;
  while (text.starts_with('#')) {
    lines.push_back(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(lines.back().size() + 1, text.size()));
  }
  return lines;
}

bool tells_version(std::string_view comment) {
  return comment.starts_with("# ricci ") || (comment.starts_with("# after step ") && comment.find(": ricci ") != comment.npos);
}

bool tells_build(std::string_view comment) {
  return tells_version(comment) || comment.starts_with("# commit ") || comment.starts_with("# after step ");
}

std::vector<std::string> builds_in(std::string_view text) {
  std::vector<std::string> builds;
  for (const std::string_view comment : comments_on_top(text))
    if (tells_build(comment)) builds.emplace_back(comment.substr(2));
  return builds;
}

std::string with_comments_of(const std::string& old_text, const std::string& yaml) {
  Comments comments = comments_of(old_text);
  Section section;
  std::istringstream lines(yaml);
  std::string result;
  for (std::string each; std::getline(lines, each);) {
    const std::string key = section.key_of(parse(each));
    result += comments.before[key] + each + comments.behind[key] + "\n";
    comments.before.erase(key), comments.behind.erase(key);
  }
  for (const auto& [key, text] : comments.before) result += text;  // of keys that are no more
  for (const auto& [key, text] : comments.behind)
    if (!text.empty()) result += text.substr(text.find('#')) + "\n";
  return result + comments.last;
}

}  // namespace ricci::apps
