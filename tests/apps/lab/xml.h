// Pictures and pages are well-formed XML, for programs other than browsers.
#pragma once
#include <string>
#include <vector>

#include "tests/data/files.h"

namespace test_data {

// Elements are nested, attributes are quoted, and texts contain no bare < or &.
inline std::string fault_of(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = 0; at < xml.size(); ++at) {
    if (xml[at] == '&') {
      const std::string entity = xml.substr(at, xml.find(';', at) + 1 - at);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;" && entity != "&#39;")
        return "entity " + entity.substr(0, 10);
    }
    if (xml[at] != '<' || xml[at + 1] == '!') continue;
    const size_t end = xml.find('>', at);
    if (end == xml.npos) return "no end of tag";
    const std::string tag = xml.substr(at + 1, end - at - 1), name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag.find('<') != tag.npos || count_of(tag, "\"") % 2) return "tag " + tag;
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != tag) return "end of " + tag;
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty() ? "" : "open " + open.back();
}

}  // namespace test_data
