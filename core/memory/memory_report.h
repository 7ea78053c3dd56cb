// The line that is shown when there is no memory left.
#pragma once
#include <array>
#include <string>

#include "core/memory/memory.h"

namespace ricci {

std::string out_of_memory(int64_t bytes, Device device, const CallSite& asker);

// The bytes on the device by what they are held for; `other` is what no holder on this thread knows of.
using HeldBytes = std::array<int64_t, static_cast<size_t>(HeldFor::other) + 1>;
HeldBytes held_on(Device device);
// Activations and `other`: what is held for the batch, not for the model.
inline int64_t working_bytes(const HeldBytes& held) {
  return held[static_cast<size_t>(HeldFor::activations)] + held[static_cast<size_t>(HeldFor::other)];
}
const char* name_of(HeldFor use);

// 512 bytes, 1.5 KiB, 768.0 MiB
std::string show_bytes(int64_t bytes);

}  // namespace ricci
