// Hostile input runs in a separate process, under a bound of time and memory: a hang, a crash or an endless allocation is a failed test and
// not the end of all tests. tests/bounded.cpp does the same for whole programs.
#pragma once
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"

namespace test {

// Seconds of processor time, and ten times that while every thread of the process waits for something other than a processor: a busy
// machine does not make a working process exceed the bound.
struct Bound {
  double seconds = 2;
  long mebibytes = 256;
};
inline constexpr double kWaiting = 10;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(RICCI_UNDER_QEMU)
inline constexpr int kSanitizerShare = 10;  // the share of time and memory
#else
inline constexpr int kSanitizerShare = 1;
#endif

inline double seconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Seconds of processor time that a process has used so far, in all its threads; 0 if it has ended.
inline double processor_seconds(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/stat";
  std::FILE* const file = std::fopen(path.c_str(), "r");
  if (!file) return 0;
  char text[1024] = {};
  const size_t length = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  const char* const behind_name = static_cast<const char*>(::memrchr(text, ')', length));
  unsigned long user = 0, system = 0;
  if (!behind_name || std::sscanf(behind_name, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2) return 0;
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// True if a thread of the process runs or waits for a processor.
inline bool is_running(pid_t process) {
  std::error_code gone;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task", gone)) {
    std::string status;
    std::getline(std::ifstream(thread.path() / "stat"), status);
    const size_t state = status.rfind(") ");
    if (state != status.npos && status.compare(state, 3, ") R") == 0) return true;
  }
  return false;
}

// Mebibytes of memory that a process holds; 0 if it has ended.
inline long resident_mebibytes(pid_t process) {
  long pages = 0, resident = 0;
  const std::string path = "/proc/" + std::to_string(process) + "/statm";
  if (std::FILE* const file = std::fopen(path.c_str(), "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * (::sysconf(_SC_PAGESIZE) / 1024) / 1024;
}

struct Watched {
  int status = 0;          // as from waitpid
  std::string fault = {};  // "more than 2 s", "more than 256 MiB", or empty
};

// Waits for a child that leads a process group, and kills the group if it exceeds the bound. `before`: mebibytes inherited from its parent,
// not counted.
inline Watched watch(pid_t child, Bound bound, long before = 0) {
  // A machine that pauses between two looks at the child adds only a short wait.
  constexpr double longest_look = 0.05;
  double last = seconds_now(), waited = 0;
  Watched watched;
  for (long wait = 100'000;; wait = std::min(wait * 2, 5'000'000L)) {
    rusage usage{};
    const pid_t done = ::wait4(child, &watched.status, WNOHANG, &usage);
    const long most = done == child ? usage.ru_maxrss / 1024 : resident_mebibytes(child);
    if (most - before > bound.mebibytes) watched.fault = "more than " + std::to_string(bound.mebibytes) + " MiB";
    if (done == child) return watched;
    const double now = seconds_now();
    if (!is_running(child)) waited += std::min(now - last, longest_look);
    last = now;
    if (watched.fault.empty() && (processor_seconds(child) > bound.seconds || waited > kWaiting * bound.seconds))
      watched.fault = ricci::format_message("more than {} s", {bound.seconds});
    if (!watched.fault.empty()) {
      ::kill(-child, SIGKILL);
      ::waitpid(child, &watched.status, 0);
      return watched;
    }
    const timespec pause{0, wait};
    ::nanosleep(&pause, nullptr);
  }
}

// The text of the error that f throws, or "no error", or the end of its process: "more than 2 s", "more than 256 MiB", "signal 11".
template <class F> std::string bounded_error(const F& f, Bound bound = {}) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  bound.seconds *= kSanitizerShare, bound.mebibytes *= kSanitizerShare;
  const long before = resident_mebibytes(::getpid());
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return "no process";
  if (child == 0) {
    ::setpgid(0, 0);
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    std::string text = "no error";
    try {
      f();
    } catch (const ricci::Error& error) {
      text = error.what();
    } catch (const std::exception& error) {
      text = std::string("an exception that is no ricci::Error: ") + error.what();
    }
    text.resize(std::min<size_t>(text.size(), 60'000));  // fits into the pipe
    [[maybe_unused]] const ssize_t written = ::write(ends[1], text.data(), text.size());
    ::_exit(0);
  }
  ::setpgid(child, child);
  ::close(ends[1]);
  const Watched watched = watch(child, bound, before);
  std::string text(65'536, '\0');
  const ssize_t got = ::read(ends[0], text.data(), text.size());
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  ::close(ends[0]);
  if (!watched.fault.empty()) return watched.fault;
  if (WIFSIGNALED(watched.status)) return "signal " + std::to_string(WTERMSIG(watched.status));
  return WEXITSTATUS(watched.status) == 0 ? text : "exit code " + std::to_string(WEXITSTATUS(watched.status));
}

}  // namespace test
