// Errors of work on several threads that do not depend on the threads.
#pragma once
#include <exception>
#include <vector>

#include "core/cpu/parallel.h"

namespace ricci {

// parallel_for, but every chunk runs whatever the others throw, and of several errors that of the first chunk reaches the caller.
template <class Body> void parallel_for_first_error(int64_t n, int64_t grain, const Body& body) {
  std::vector<std::exception_ptr> errors(static_cast<size_t>((n + grain - 1) / grain));
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    try {
      body(begin, end);
    } catch (...) {
      errors[static_cast<size_t>(begin / grain)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace ricci
