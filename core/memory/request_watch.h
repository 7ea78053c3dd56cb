// Calls a function for each tensor that is requested or released, for example to note what memory is held for at its peak.
#pragma once
#include <cstdint>
#include <functional>

#include "core/tensor.h"

namespace ricci {

// While alive, `on_request` is told the bytes of each tensor that this thread asks for on the device, before they are counted. One at a
// time on a thread. (A dry run has its own: core/memory/dry_run.h.)
class RequestWatch {
 public:
  using OnRequest = std::function<void(int64_t bytes)>;
  using OnBlock = std::function<void(const void* block, int64_t bytes)>;  // the memory that it got; -1: of a tensor that goes
  RequestWatch(Device device, OnRequest on_request, OnBlock on_block = {});
  ~RequestWatch();
  RequestWatch(const RequestWatch&) = delete;
};

}  // namespace ricci
