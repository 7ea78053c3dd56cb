// The fault of RICCI_FAULT (signal_at.cpp): which call of which kind meets which error.
#pragma once
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

enum Kind {
  kOpen,
  kEnter,
  kCreate,
  kRead,
  kWrite,
  kSync,
  kSize,
  kRename,
  kUnlink,
  kMkdir,
  kStat,
  kList,
  kMap,
  kArena,
  kLock,
  kClose,
  kRights,
  kMalloc
};
constexpr const char* kKinds[] = {"open", "enter", "create", "read", "write", "fsync", "ftruncate", "rename", "unlink", "mkdir", "stat",
    "list", "map", "arena", "flock", "close", "chmod", "malloc"};

// ---- The fault of RICCI_FAULT
constexpr int kDie = -1, kShort = -2, kIgnored = -3;
constexpr struct {
  const char* name;
  int value;
} kWays[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO}, {"EINTR", EINTR}, {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM}, {"EACCES", EACCES},
    {"ENOLCK", ENOLCK}, {"die", kDie}, {"short", kShort}, {"ignored", kIgnored}};

int fault_kind = -1, fault_way = 0;
size_t fault_at = 0;
bool fault_stays = false, is_in_main = false;
std::atomic<size_t> fault_seen{0};

__attribute__((constructor)) void read_fault() {
  const char* const text = std::getenv("RICCI_FAULT");
  char kind[16], stays[2] = "", way[16];
  if (!text || (std::sscanf(text, "%15s %zu%1[+] %15s", kind, &fault_at, stays, way) != 4 &&
                   std::sscanf(text, "%15s %zu %15s", kind, &fault_at, way) != 3))
    return;
  fault_stays = *stays;
  for (const auto& known : kWays)
    if (!std::strcmp(known.name, way)) fault_way = known.value;
  for (int k = 0; k <= kMalloc; ++k)
    if (!std::strcmp(kKinds[k], kind)) fault_kind = k;
  if (fault_kind < 0 || fault_way == 0) std::fprintf(stderr, "RICCI_FAULT: '%s' is not known\n", text), std::abort();
}

// What happens to this call: an error, one of the ways above, or nothing (0).
int fault_now(Kind kind) {
  if (kind != fault_kind || !is_in_main) return 0;
  const size_t number = ++fault_seen;
  if (number != fault_at && !(fault_stays && number > fault_at)) return 0;
  if (const char* const met = std::getenv("RICCI_FAULT_MET"))
    ::syscall(SYS_close, ::syscall(SYS_open, met, O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  return fault_way;
}

// The caller is the program itself or the C++ library: others crash where they get no memory, which no program can mend.
bool is_ours(void* caller) {
  Dl_info place = {};
  if (!is_in_main || (fault_kind != kMalloc && fault_kind != kArena) || !::dladdr(caller, &place)) return false;
  const char* const slash = std::strrchr(place.dli_fname, '/');
  const std::string_view name = slash ? slash + 1 : place.dli_fname;
  return name.find("ricci") != name.npos || name.starts_with("libstdc++");
}

// True: the call fails, and errno is set.
bool fails(Kind kind) {
  const int way = fault_now(kind);
  if (way == kDie) ::raise(SIGKILL);
  if (way > 0) errno = way;
  return way > 0;
}

}  // namespace
