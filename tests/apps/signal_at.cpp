// To be preloaded into a program (LD_PRELOAD): sends it a signal at a moment that does not depend on the clock, which is the
// n-th of its calls that change files: write beyond stderr, fsync, ftruncate, rename, unlink, open with O_CREAT; or of their
// forms with a folder (renameat, unlinkat, openat), which count under the same names.
//   RICCI_SIGNAL_AT="9 57"    SIGKILL instead of the 57th call; of a write the first half of the bytes is written
//   RICCI_SIGNAL_AT="2 57"    SIGINT before the 57th call, which then takes place
//   RICCI_CALLS=path          at the end the names of the calls are written there, one in a line
//   RICCI_SIGNAL_FORKED=15    a child that has just been forked, and gives itself a process group, sends the signal to its parent, and goes
//   on
//                             0.3 s later, when the parent has passed it on
//   RICCI_SIGNAL_ENDING=2     a process that leads a group of its own sends the signal to its parent when it ends
// What lies on the disk changes at these calls only, so that a kill at any time leaves what a kill at one of them leaves.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace {

struct Calls {
  std::mutex mutex;
  std::vector<const char*> names;
  int signal = 0;
  size_t at = 0;
  Calls() {
    if (const char* text = std::getenv("RICCI_SIGNAL_AT")) std::sscanf(text, "%d %zu", &signal, &at);
  }
};

Calls& calls() {
  static Calls& all = *new Calls;  // outlives every destructor that still writes
  return all;
}

template <class F> F* real(const char* name) { return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name)); }

// The signal that this call is to be met with; 0: none.
int signal_now(const char* name) {
  Calls& c = calls();
  const std::lock_guard lock(c.mutex);
  c.names.push_back(name);
  return c.names.size() == c.at ? c.signal : 0;
}

void meet(const char* name) {
  if (const int signal = signal_now(name)) ::raise(signal);
}

__attribute__((destructor)) void tell() {
  if (const char* const signal = std::getenv("RICCI_SIGNAL_ENDING"); signal && ::getpgrp() == ::getpid())
    ::kill(::getppid(), std::atoi(signal));
  const char* const path = std::getenv("RICCI_CALLS");
  std::FILE* const file = path ? std::fopen(path, "w") : nullptr;
  if (!file) return;
  for (const char* name : calls().names) std::fprintf(file, "%s\n", name);
  std::fclose(file);
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* bytes, size_t count) {
  static const auto next = real<ssize_t(int, const void*, size_t)>("write");
  if (const int signal = file > STDERR_FILENO ? signal_now("write") : 0) {
    if (signal == SIGKILL) (void)!next(file, bytes, count / 2);
    ::raise(signal);
  }
  return next(file, bytes, count);
}
int fsync(int file) { return meet("fsync"), real<int(int)>("fsync")(file); }
int ftruncate(int file, off_t size) noexcept { return meet("ftruncate"), real<int(int, off_t)>("ftruncate")(file, size); }
int rename(const char* from, const char* to) noexcept { return meet("rename"), real<int(const char*, const char*)>("rename")(from, to); }
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return meet("rename"), real<int(int, const char*, int, const char*)>("renameat")(from_folder, from, to_folder, to);
}
int unlinkat(int folder, const char* path, int flags) noexcept {
  return meet("unlink"), real<int(int, const char*, int)>("unlinkat")(folder, path, flags);
}
int unlink(const char* path) noexcept { return meet("unlink"), real<int(const char*)>("unlink")(path); }
int setpgid(pid_t process, pid_t group) noexcept {
  const char* const signal = std::getenv("RICCI_SIGNAL_FORKED");
  if (signal && process == 0) ::kill(::getppid(), std::atoi(signal)), ::usleep(300'000);
  return real<int(pid_t, pid_t)>("setpgid")(process, group);
}
int open(const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (flags & O_CREAT) meet("open");
  return real<int(const char*, int, ...)>("open")(path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (flags & O_CREAT) meet("open");
  return real<int(int, const char*, int, ...)>("openat")(folder, path, flags, mode);
}

}  // extern "C"
