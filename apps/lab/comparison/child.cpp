#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "apps/lab/comparison/matching.h"
#include "apps/terminal/streams.h"
#include "core/error.h"

namespace ricci::apps {
namespace {

constexpr int kCannotStart = 127;
constexpr useconds_t kWait = 20'000;  // microseconds between looks at the child and at the request to end

// Ctrl-C reaches the child without us, but a request to this process does not. It is passed on as SIGUSR1, which only asks, and at the
// second look: a SIGTERM in its place, or before one that is sent to both, would be two requests to the child, and end it before it has
// saved.
int wait_for(pid_t child) {
  for (int looks = 0;; ::usleep(kWait)) {
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) fail("cannot wait for a child process: {}", {std::strerror(errno)});
    if (Interrupt::requested() && ++looks == 2) ::kill(child, SIGUSR1);
  }
}

}  // namespace

std::optional<int> run_program(const std::string& name, const std::vector<std::string>& arguments) {
  const std::string program = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / ("ricci-" + name)).string();
  if (::access(program.c_str(), X_OK)) fail("{}: {}", {program, std::strerror(errno)});
  std::vector<std::string> all{program};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> words;
  for (std::string& word : all) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t parent = ::getpid();
  // Not fork: up to exec a request would be noted in the child's copy of our memory, which exec throws away.
  const pid_t child = ::vfork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent && ::dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) ::execv(words[0], words.data());
    ::_exit(kCannotStart);
  }
  if (child < 0) fail("cannot start {}: {}", {program, std::strerror(errno)});
  const int status = wait_for(child);
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  const auto is_request = [&](int signal) { return signal == WTERMSIG(status); };
  if (Interrupt::requested() && std::any_of(kEndingSignals.begin(), kEndingSignals.end(), is_request)) return {};
  fail("{}: ended by signal {}", {program, WTERMSIG(status)});
}

}  // namespace ricci::apps
