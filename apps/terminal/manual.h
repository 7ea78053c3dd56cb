// The manual page of a program, and the words that a shell offers for it: both from the options that the program declares.
#pragma once
#include <string>

namespace CLI {
class App;
}

namespace ricci::apps {

// In troff, with the macros of man(7): name, synopsis, commands and options, each with its own words.
std::string man_page(const CLI::App& app);

// The commands and options, and the keys of a run file, such as "model.layers=", where the program takes them: a line each, without those
// that --help hides.
std::string offered_words(const CLI::App& app);

}  // namespace ricci::apps
