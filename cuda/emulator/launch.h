// Checks a launch before it is queued or runs.
#pragma once
#include <cstddef>

#include "cuda/emulator/emulator.h"

namespace emu {

void check_launch(const Launch& launch);                                       // checks the sizes
void check_arguments(const Launch& launch, const void* kernel, size_t bytes);  // refuses pointers to CPU memory

}  // namespace emu
