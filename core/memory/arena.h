// CPU memory for tensors: blocks are cut from huge-page slabs and kept for reuse, so that a training step after the
// first touches no fresh page. (A fresh GiB costs seven times more in page faults on small pages than on huge ones.)
#pragma once
#include "core/memory/memory.h"

namespace ricci {

Allocator& cpu_arena();

}  // namespace ricci
