// NCCL, which carries the tensors of cuda between ranks. The library is loaded when the first of them is exchanged, so that a program of
// one process does without it. The only file that includes nccl.h. Its communicator does not block the host: a call that has to wait for
// other ranks returns at once, and the wait for it can report the ranks that are missing (cuda/ranks/roll_call.h).
#include <dlfcn.h>

#include <string>
#include <type_traits>

#include "core/error.h"
#include "cuda/ranks/device_table.h"
#include "cuda/toolkit/runtime.h"

#if __has_include(<nccl.h>)
#include <nccl.h>

namespace ricci {
namespace {

constexpr int kOldest = 21800;  // NCCL 2.18

struct Library {
  decltype(&ncclGetVersion) version;
  decltype(&ncclGetUniqueId) make_id;
  decltype(&ncclCommInitRankConfig) join;
  decltype(&ncclGroupStart) begin_group;
  decltype(&ncclGroupEnd) end_group;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclBroadcast) broadcast;
  decltype(&ncclCommGetAsyncError) state;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclGetErrorString) text;
  ncclComm_t ranks = nullptr;
  int number = 0;  // 22809 for 2.28.9

  Library();
  std::string load(const char* file);
};

Library::Library() {
  std::string tried;
  for (const char* file : {"libnccl.so.2", RICCI_CUDA_LIBRARIES "/libnccl.so.2"}) {
    const std::string reason = load(file);
    if (reason.empty()) return;
    tried += (tried.empty() ? "" : ", ") + std::string(file) + " (" + reason + ")";
  }
  fail("NCCL cannot be loaded; tried {}; set LD_LIBRARY_PATH to its folder", {tried});
}

// Returns the reason why it is not loaded, or an empty text if it is.
std::string Library::load(const char* file) {
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) return dlerror();
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (!function) missing = std::string("lacks ") + name;
  };
  find(version, "ncclGetVersion");
  find(make_id, "ncclGetUniqueId");
  find(join, "ncclCommInitRankConfig");
  find(begin_group, "ncclGroupStart");
  find(end_group, "ncclGroupEnd");
  find(send, "ncclSend");
  find(receive, "ncclRecv");
  find(all_gather, "ncclAllGather");
  find(all_reduce, "ncclAllReduce");
  find(broadcast, "ncclBroadcast");
  find(state, "ncclCommGetAsyncError");
  find(abort, "ncclCommAbort");
  find(text, "ncclGetErrorString");
  if (!missing.empty()) return missing;
  version(&number);
  return number >= kOldest ? "" : "version " + std::to_string(number) + ", expected 2.18 or later";
}

Library& library() {
  static Library& one = *new Library;  // outlives every tensor
  return one;
}

int join(const std::string& id, int rank, int count) {
  ncclUniqueId unique{};
  if (id.size() != sizeof unique.internal) fail("NCCL: an id of {} bytes, expected {}", {id.size(), sizeof unique.internal});
  id.copy(unique.internal, id.size());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return library().join(&library().ranks, count, unique, rank, &config);
}

}  // namespace

DeviceTable nccl_table() {
  Library& l = library();
  static_assert(DeviceTable::kInProgress == ncclInProgress);
  const auto stream = [] { return cuda_build::stream(); };
  return {
      .version = format_message("NCCL {}.{}.{}", {l.number / 10000, l.number / 100 % 100, l.number % 100}),
      .make_id =
          [&l](std::string& id) {
            ncclUniqueId unique{};
            const ncclResult_t result = l.make_id(&unique);
            id.assign(unique.internal, sizeof unique.internal);
            return static_cast<int>(result);
          },
      .join = join,
      .begin_group = [&l] { return static_cast<int>(l.begin_group()); },
      .end_group = [&l] { return static_cast<int>(l.end_group()); },
      .send = [=, &l](const void* data, size_t bytes,
                  int receiver) { return static_cast<int>(l.send(data, bytes, ncclUint8, receiver, l.ranks, stream())); },
      .receive = [=, &l](void* data, size_t bytes,
                     int from) { return static_cast<int>(l.receive(data, bytes, ncclUint8, from, l.ranks, stream())); },
      .all_gather =
          [=, &l](void* shares, size_t bytes, int rank) {
            const char* const mine = static_cast<const char*>(shares) + bytes * static_cast<size_t>(rank);
            return static_cast<int>(l.all_gather(mine, shares, bytes, ncclUint8, l.ranks, stream()));
          },
      .sum = [=, &l](double* numbers,
                 size_t count) { return static_cast<int>(l.all_reduce(numbers, numbers, count, ncclFloat64, ncclSum, l.ranks, stream())); },
      .from_first = [=, &l](void* data,
                        size_t bytes) { return static_cast<int>(l.broadcast(data, data, bytes, ncclUint8, 0, l.ranks, stream())); },
      .state =
          [&l](int& state) {
            ncclResult_t found = ncclSuccess;
            const ncclResult_t result = l.state(l.ranks, &found);
            state = static_cast<int>(found);
            return static_cast<int>(result);
          },
      .abort = [&l] { return l.ranks ? static_cast<int>(l.abort(l.ranks)) : 0; },
      .text = [&l](int error) { return std::string(l.text(static_cast<ncclResult_t>(error))); },
  };
}

}  // namespace ricci

#else

ricci::DeviceTable ricci::nccl_table() { fail("this program was built without NCCL's header; install NCCL and build again"); }

#endif
