// A page of headings, sentences, tables and drawings that needs nothing else. It is well-formed as XML too.
#pragma once
#include <string>
#include <vector>

#include "apps/lab/drawing/svg.h"

namespace ricci::apps {

// `body` is HTML that stands below the title.
std::string text_page(const std::string& title, const std::string& body, Theme theme);

// The first row are the names of the columns.
std::string html_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace ricci::apps
