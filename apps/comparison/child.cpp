#include "apps/comparison/child.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "apps/terminal/interrupt.h"
#include "core/error.h"

namespace ricci::apps {
namespace {

constexpr int kCannotStart = 127;
constexpr useconds_t kWait = 20'000;  // microseconds between looks at the child and at the request to end

// A process group of its own: Ctrl-C reaches this process alone, which passes it on once; the second one would end the child before
// it has saved.
[[noreturn]] void become(const std::vector<char*>& words, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kCannotStart);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  ::execv(words[0], words.data());
  ::_exit(kCannotStart);
}

int wait_for(pid_t child) {
  bool asked = false;
  for (int status = 0;;) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) fail("cannot wait for a child process: {}", {std::strerror(errno)});
    if (Interrupt::requested() && !asked) ::kill(child, SIGTERM), asked = true;
    ::usleep(kWait);
  }
}

}  // namespace

int run_program(const std::string& name, const std::vector<std::string>& arguments) {
  const std::string program = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / ("ricci-" + name)).string();
  if (::access(program.c_str(), X_OK)) fail("{}: {}", {program, std::strerror(errno)});
  std::vector<std::string> all{program};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> words;
  for (std::string& word : all) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) fail("cannot start {}: {}", {program, std::strerror(errno)});
  if (child == 0) become(words, parent);
  const int status = wait_for(child);
  if (WIFSIGNALED(status)) fail("{}: ended by signal {}", {program, WTERMSIG(status)});
  return WEXITSTATUS(status);
}

}  // namespace ricci::apps
