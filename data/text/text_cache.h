// What reading a whole text once has told, remembered for the next run on it.
#pragma once
#include <functional>
#include <string>

#include "data/text/text_source.h"

namespace ricci {

// find(), or what it returned for this text before. `what` names the question and may stand in a file name. An answer is of
// use while the files of the text have the same bytes; another, or a damaged one, is found again.
// An empty folder name, a folder of another user, or one that cannot be written, remembers nothing.
// Errors: those of find; a text that changed meanwhile.
std::string remembered(
    const TextSource& text, const std::string& what, const std::string& cache_folder, const std::function<std::string()>& find);

}  // namespace ricci
