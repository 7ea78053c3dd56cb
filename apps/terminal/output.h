// What is told to a terminal, a pipe or a file whose reader may have stopped, as after Ctrl-S.
#pragma once
#include <string_view>

namespace ricci::apps {

// Writes to an open file, and waits for its reader as long as it takes. After a request to end (Interrupt) the waiting ends
// within a second in all, and what is left is dropped, as is output that cannot be written: no run ends or hangs because
// nobody reads what it tells.
void tell(int descriptor, std::string_view text);

}  // namespace ricci::apps
