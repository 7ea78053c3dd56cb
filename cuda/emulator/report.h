// Shows source lines and threads as text, for the emulator's errors.
#pragma once
#include <string>
#include <vector>

#include "cuda/emulator/emulator.h"

namespace emu {

std::string describe(Loc loc);
bool same_place(Loc a, Loc b);
std::string ranges(const std::vector<unsigned>& numbers);  // ascending numbers as "0-31, 40, 42", at most six ranges
std::string position(uint3 index, dim3 size);              // "7", or "(7, 0, 1)" in more than one dimension

}  // namespace emu
