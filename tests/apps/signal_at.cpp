// Preloaded into a program (LD_PRELOAD), it causes an event at the n-th system call, independent of the clock.
//   RICCI_SIGNAL_AT="9 57"       SIGKILL instead of the 57th call that changes files; a write first writes half of its bytes.
//                                Such calls are write beyond stderr, fsync, ftruncate, rename, unlink, mkdir, open with O_CREAT, and their
//                                forms with a folder or a position (renameat, pwrite, fdatasync), under the same names
//   RICCI_SIGNAL_AT="2 57"       SIGINT before the 57th call, which then takes place
//   RICCI_CALLS=path             at the end these calls are written there, one in a line: the name and the paths
//   RICCI_FAULT="read 3 EIO"     the 3rd call of a kind fails with this error. "3+": so does every later one. The kinds are below.
//                                Instead of an error: die (SIGKILL; half a write), short (half the bytes are read or written),
//                                ignored (a write fails and reports success).
//                                "enter" is the opening of a folder that was just made. Calls before main are not counted
//   RICCI_FAULT_MET=path         a file that is made when the fault occurs
//   RICCI_PLANTED=no_sync        a planted bug: files are not synced; no_folder_sync: folders are not; late_sync: files are synced
//                                after the next renaming
// The disk changes only at these calls, so a kill at any time leaves the files of a kill at one of them.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

extern "C" void* __libc_malloc(size_t bytes);

namespace {

// ---- The fault of RICCI_FAULT: an error at a call of a kind
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
  kMalloc
};
constexpr const char* kKinds[] = {"open", "enter", "create", "read", "write", "fsync", "ftruncate", "rename", "unlink", "mkdir", "stat",
    "list", "map", "arena", "flock", "close", "malloc"};

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

// The fate of this call: an error, one of the ways above, or nothing (0).
int fault_now(Kind kind) {
  if (kind != fault_kind || !is_in_main) return 0;
  const size_t number = ++fault_seen;
  if (number != fault_at && !(fault_stays && number > fault_at)) return 0;
  if (const char* const met = std::getenv("RICCI_FAULT_MET"))
    ::syscall(SYS_close, ::syscall(SYS_openat, AT_FDCWD, met, O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  return fault_way;
}

// The caller is the program itself or the C++ library. Other libraries crash without memory.
bool is_ours(void* caller) {
  Dl_info place = {};
  if (!is_in_main || (fault_kind != kMalloc && fault_kind != kArena) || !::dladdr(caller, &place)) return false;
  const char* const slash = std::strrchr(place.dli_fname, '/');
  const std::string_view name = slash ? slash + 1 : place.dli_fname;
  return name.find("ricci") != name.npos || name.starts_with("libstdc++");
}

// True if the call fails, with errno set.
bool fails(Kind kind) {
  const int way = fault_now(kind);
  if (way == kDie) ::raise(SIGKILL);
  if (way > 0) errno = way;
  return way > 0;
}

// ---- The calls that change files
struct Calls {
  std::mutex mutex;
  std::vector<std::string> lines;
  size_t count = 0;
  int signal = 0;
  size_t at = 0;
  const char* const path = std::getenv("RICCI_CALLS");
  const std::string planted = std::getenv("RICCI_PLANTED") ? std::getenv("RICCI_PLANTED") : "";
  std::vector<int> late;  // descriptors that a planted bug syncs later
  Calls() {
    if (const char* text = std::getenv("RICCI_SIGNAL_AT")) std::sscanf(text, "%d %zu", &signal, &at);
  }
};

Calls& calls() {
  static Calls& all = *new Calls;  // outlives all destructors that write
  return all;
}

std::string path_of(int descriptor) {
  char path[4096];
  const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path, sizeof path);
  return std::string(path, length > 0 ? static_cast<size_t>(length) : 0);
}
std::string path_of(int folder, const char* name) {
  if (*name == '/') return name;
  if (folder != AT_FDCWD) return path_of(folder) + "/" + name;
  char here[4096];
  return std::string(::getcwd(here, sizeof here) ? here : "") + "/" + name;
}

// Notes a call; returns its signal, or 0.
template <class... Paths> int signal_now(const char* name, const Paths&... paths) {
  Calls& c = calls();
  const std::lock_guard lock(c.mutex);
  if (c.path) c.lines.push_back((std::string(name) + ... + (" " + paths())));
  return ++c.count == c.at ? c.signal : 0;
}

template <class... Paths> void meet(const char* name, const Paths&... paths) {
  if (const int signal = signal_now(name, paths...)) ::raise(signal);
}

template <class F> F* real(const char* name) { return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name)); }

__attribute__((constructor)) void make_calls() { calls(); }

__attribute__((destructor)) void write_calls() {
  is_in_main = false;
  std::FILE* const file = calls().path ? std::fopen(calls().path, "w") : nullptr;
  if (!file) return;
  for (const std::string& line : calls().lines) std::fprintf(file, "%s\n", line.c_str());
  std::fclose(file);
}

template <class Next> ssize_t reads(size_t count, const Next& next) {
  const int way = fault_now(kRead);
  if (way == kDie) ::raise(SIGKILL);
  if (way > 0) return errno = way, -1;
  return next(way == kShort && count > 1 ? count / 2 : count);
}

template <class Next> ssize_t writes(int file, size_t count, const Next& next) {
  if (file <= STDERR_FILENO) return next(count);
  const int signal = signal_now("write", [&] { return path_of(file); }), way = fault_now(kWrite);
  if (signal == SIGKILL || way == kDie) (void)!next(count / 2), ::raise(SIGKILL);
  if (signal) ::raise(signal);
  if (way > 0) return errno = way, -1;
  if (way == kIgnored) return static_cast<ssize_t>(count);
  return next(way == kShort && count > 1 ? count / 2 : count);
}

int syncs(int file, const char* call) {
  struct stat status = {};
  const bool is_folder = real<int(int, struct stat*)>("fstat")(file, &status) == 0 && S_ISDIR(status.st_mode);
  const std::string& planted = calls().planted;
  if (planted == (is_folder ? "no_folder_sync" : "no_sync")) return 0;
  if (planted == "late_sync" && !is_folder) return calls().late.push_back(file), 0;
  meet("fsync", [&] { return path_of(file); });
  return fails(kSync) ? -1 : real<int(int)>(call)(file);
}

int renames(int from_folder, const char* from, int to_folder, const char* to) {
  meet(
      "rename", [&] { return path_of(from_folder, from); }, [&] { return path_of(to_folder, to); });
  if (fails(kRename)) return -1;
  const int result = real<int(int, const char*, int, const char*)>("renameat")(from_folder, from, to_folder, to);
  for (const int file : calls().late) meet("fsync", [&] { return path_of(file); });
  calls().late.clear();
  return result;
}

int unlinks(int folder, const char* path, int flags) {
  meet("unlink", [&] { return path_of(folder, path); });
  return fails(kUnlink) ? -1 : real<int(int, const char*, int)>("unlinkat")(folder, path, flags);
}

thread_local std::string just_made;  // the name of a folder until it is opened

int makes_folder(int folder, const char* path, mode_t mode) {
  meet("mkdir", [&] { return path_of(folder, path); });
  if (fails(kMkdir)) return -1;
  const int result = real<int(int, const char*, mode_t)>("mkdirat")(folder, path, mode);
  just_made = result == 0 ? path : "";
  return result;
}

bool is_unnamed(int flags) { return (flags & O_TMPFILE) == O_TMPFILE; }

int opens(int folder, const char* path, int flags, mode_t mode) {
  const bool creates = flags & O_CREAT;
  if (creates) meet("open", [&] { return path_of(folder, path); });
  const bool enters = !just_made.empty() && just_made == path;
  if (enters) just_made.clear();
  if (enters && fails(kEnter)) return -1;
  if (fails(creates || is_unnamed(flags) ? kCreate : kOpen)) return -1;
  return real<int(int, const char*, int, ...)>("openat")(folder, path, flags, mode);
}

using Main = int(int, char**, char**);
Main* real_main = nullptr;
int counted_main(int count, char** words, char** environment) {
  is_in_main = true;
  return real_main(count, words, environment);
}

// The rights that follow the flags of an open.
mode_t mode_of(int flags, std::va_list rest) { return flags & O_CREAT || is_unnamed(flags) ? va_arg(rest, mode_t) : 0; }

}  // namespace

extern "C" {

void* malloc(size_t bytes) { return is_ours(__builtin_return_address(0)) && fails(kMalloc) ? nullptr : __libc_malloc(bytes); }

ssize_t read(int file, void* bytes, size_t count) {
  return reads(count, [&](size_t part) { return real<ssize_t(int, void*, size_t)>("read")(file, bytes, part); });
}
ssize_t write(int file, const void* bytes, size_t count) {
  static const auto next = real<ssize_t(int, const void*, size_t)>("write");
  return writes(file, count, [&](size_t part) { return next(file, bytes, part); });
}
ssize_t pread(int file, void* bytes, size_t count, off_t at) {
  return reads(count, [&](size_t part) { return real<ssize_t(int, void*, size_t, off_t)>("pread")(file, bytes, part, at); });
}
ssize_t pwrite(int file, const void* bytes, size_t count, off_t at) {
  return writes(file, count, [&](size_t part) { return real<ssize_t(int, const void*, size_t, off_t)>("pwrite")(file, bytes, part, at); });
}
int fsync(int file) { return syncs(file, "fsync"); }
int fdatasync(int file) { return syncs(file, "fdatasync"); }
int ftruncate(int file, off_t size) noexcept {
  meet("ftruncate", [&] { return path_of(file); });
  return fails(kSize) ? -1 : real<int(int, off_t)>("ftruncate")(file, size);
}
int rename(const char* from, const char* to) noexcept { return renames(AT_FDCWD, from, AT_FDCWD, to); }
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return renames(from_folder, from, to_folder, to);
}
int unlinkat(int folder, const char* path, int flags) noexcept { return unlinks(folder, path, flags); }
int unlink(const char* path) noexcept { return unlinks(AT_FDCWD, path, 0); }
int mkdir(const char* path, mode_t mode) noexcept { return makes_folder(AT_FDCWD, path, mode); }
int mkdirat(int folder, const char* path, mode_t mode) noexcept { return makes_folder(folder, path, mode); }
int stat(const char* path, struct stat* status) noexcept {
  return fails(kStat) ? -1 : real<int(const char*, struct stat*)>("stat")(path, status);
}
int lstat(const char* path, struct stat* status) noexcept {
  return fails(kStat) ? -1 : real<int(const char*, struct stat*)>("lstat")(path, status);
}
int fstat(int file, struct stat* status) noexcept { return fails(kStat) ? -1 : real<int(int, struct stat*)>("fstat")(file, status); }
int fstatat(int folder, const char* path, struct stat* status, int flags) noexcept {
  return fails(kStat) ? -1 : real<int(int, const char*, struct stat*, int)>("fstatat")(folder, path, status, flags);
}
struct dirent* readdir(DIR* list) {
  return fails(kList) ? nullptr : real<struct dirent*(DIR*)>("readdir")(list);
}
DIR* opendir(const char* path) { return fails(kOpen) ? nullptr : real<DIR*(const char*)>("opendir")(path); }
void* mmap(void* at, size_t bytes, int rights, int flags, int file, off_t from) noexcept {
  const bool is_arena = flags & MAP_ANONYMOUS;
  if ((!is_arena || is_ours(__builtin_return_address(0))) && fails(is_arena ? kArena : kMap)) return MAP_FAILED;
  return real<void*(void*, size_t, int, int, int, off_t)>("mmap")(at, bytes, rights, flags, file, from);
}
int flock(int file, int operation) noexcept { return fails(kLock) ? -1 : real<int(int, int)>("flock")(file, operation); }
// Linux closes a file even if it returns an error.
int close(int file) {
  const bool failed = fails(kClose);
  const int error = errno, result = real<int(int)>("close")(file);
  return failed ? errno = error, -1 : result;
}
int open(const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return opens(AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return opens(folder, path, flags, mode);
}

int __libc_start_main(Main* main, int count, char** words, void (*begin)(), void (*end)(), void (*unload)(), void* stack) {
  real_main = main;
  const auto start = real<int(Main*, int, char**, void (*)(), void (*)(), void (*)(), void*)>("__libc_start_main");
  return start(counted_main, count, words, begin, end, unload, stack);
}

// Programs and libraries for large files call the names that end with 64.
#define ALSO_64(name) extern decltype(name) name##_large asm(#name "64") __attribute__((alias(#name)))
ALSO_64(open);
ALSO_64(openat);
ALSO_64(pread);
ALSO_64(pwrite);
ALSO_64(ftruncate);
ALSO_64(stat);
ALSO_64(lstat);
ALSO_64(fstat);
ALSO_64(fstatat);
ALSO_64(readdir);
ALSO_64(mmap);

}  // extern "C"
