#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "apps/lab/comparison/matching.h"
#include "apps/terminal/signals.h"
#include "core/cpu/ending_signals.h"
#include "core/error.h"

namespace ricci::apps {
namespace {

constexpr int kCannotStart = 127;
constexpr useconds_t kWait = 20'000;  // microseconds between looks at the child and at the request to end

// While alive, SIGTSTP (Ctrl-Z) is noted, for the wait for a child to answer. It stays ignored where it was ignored before.
class StopRequest {
 public:
  StopRequest() {
    noted() = 0;
    struct sigaction action = {};
    action.sa_handler = note;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGTSTP, &action, &old_);
    if (old_.sa_handler == SIG_IGN) ::sigaction(SIGTSTP, &old_, nullptr);
  }
  ~StopRequest() { ::sigaction(SIGTSTP, &old_, nullptr); }
  StopRequest(const StopRequest&) = delete;

  // Stops the child and then this process, as Ctrl-Z does. Returns when this process is continued; the child then goes on, too.
  void answer(pid_t child) const {
    if (!noted()) return;
    noted() = 0;
    ::kill(-child, SIGSTOP);
    struct sigaction noting = {};
    ::sigaction(SIGTSTP, &old_, &noting);
    ::raise(SIGTSTP);
    ::sigaction(SIGTSTP, &noting, nullptr);
    ::kill(-child, SIGCONT);
  }

 private:
  static void note(int) { noted() = 1; }
  static volatile std::sig_atomic_t& noted() {
    static volatile std::sig_atomic_t value = 0;
    return value;
  }
  struct sigaction old_ = {};
};

// The child has a process group of its own. The terminal therefore sends Ctrl-C to this process only, which passes it on: a child that got
// it from the terminal and from us would take the second one as "end at once", and save nothing. For the terminal such a group is in the
// background, where writing may stop it (stty tostop); SIGTTOU is ignored, so that it does not.
[[noreturn]] void become(const std::vector<char*>& words, pid_t parent, const sigset_t& mask) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kCannotStart);
  for (const int signal : kEndingSignals)
    if (struct sigaction current = {}; ::sigaction(signal, nullptr, &current) == 0 && current.sa_handler != SIG_IGN)
      std::signal(signal, SIG_DFL);
  std::signal(SIGTTOU, SIG_IGN);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  ::execv(words[0], words.data());
  ::_exit(kCannotStart);
}

// Requests to end wait until the child has no handler. Between fork and exec it still has the handler of this process, which would note a
// request in memory that exec throws away.
pid_t start(const std::vector<char*>& words) {
  sigset_t requests, mask;
  ::sigemptyset(&requests);
  for (const int signal : kEndingSignals) ::sigaddset(&requests, signal);
  ::sigprocmask(SIG_BLOCK, &requests, &mask);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) become(words, parent, mask);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  if (child > 0) ::setpgid(child, child);  // whichever of the two is first
  return child;
}

struct Ended {
  int status;
  bool was_asked;  // a request to end was passed on
};

Ended wait_for(pid_t child) {
  const StopRequest stop;
  bool asked = false;
  for (int status = 0;;) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return {status, asked};
    if (ended < 0 && errno != EINTR) fail("cannot wait for a child process: {}", {std::strerror(errno)});
    if (Interrupt::requested() && !asked) {
      ::kill(child, SIGTERM);
      asked = true;
    }
    stop.answer(child);
    ::usleep(kWait);
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
  const pid_t child = start(words);
  if (child < 0) fail("cannot start {}: {}", {program, std::strerror(errno)});
  const auto [status, was_asked] = wait_for(child);
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  if (was_asked && WTERMSIG(status) == SIGTERM) return {};
  fail("{}: ended by signal {}", {program, WTERMSIG(status)});
}

}  // namespace ricci::apps
