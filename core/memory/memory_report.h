// The line that is shown when there is no memory left.
#pragma once
#include <string>

#include "core/tensor.h"

namespace ricci {

std::string out_of_memory(int64_t bytes, Device device, const Asker& asker);

// 512 bytes, 1.5 KiB, 768.0 MiB
std::string show_bytes(int64_t bytes);

}  // namespace ricci
