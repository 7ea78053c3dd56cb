// Pages of HTML that need nothing else.
#pragma once
#include <string>
#include <vector>

#include "apps/lab/drawing/svg.h"
#include "apps/terminal/table.h"

namespace ricci::apps {

// A chart with values under the pointer, a table below it, and below that sentences.
std::string to_page(const Chart& chart, const ResultTable& table, Theme theme, const std::vector<std::string>& notes = {});

// A page of headings, sentences, tables and drawings, well-formed as XML too. `body` is HTML that stands below the title.
std::string text_page(const std::string& title, const std::string& body, Theme theme);
std::string html_table(const ResultTable& table);
std::string html_notes(const std::vector<std::string>& notes);

}  // namespace ricci::apps
