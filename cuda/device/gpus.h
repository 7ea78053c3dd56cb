// The one GPU of a machine that this process uses.
#pragma once
#include <string>

namespace ricci {

// Number `index` of the GPUs that it can see, modulo their number. To be called before anything else asks for cuda.
void use_gpu(int index);
// The number of GPUs it can see, and the bus address of the one in use: "4 0000:3b:00.0". Empty where cuda is not available.
std::string gpu_in_use();

}  // namespace ricci
