// The one GPU of a machine that this process uses.
#pragma once
#include <string>

namespace ricci {

// Number `index` of the GPUs that it can see, modulo their number. To be called before anything else asks for cuda.
void use_gpu(int index);
// The bus address of the one in use: "0000:3b:00.0". Empty if cuda is not available.
std::string gpu_in_use();

}  // namespace ricci
