// ricci-bounded SECONDS MEBIBYTES PROGRAM ARGUMENT ...: runs a program under a bound of processor time (and ten times that of waiting) and
// of memory. The exit code is the program's, 128 + N if signal N ended it, and 124 with a line on stderr if it exceeded a bound and was
// killed.
#include "tests/bounded.h"

#include <cerrno>
#include <cstring>

namespace {

pid_t child = 0;

void pass_on(int signal) { ::kill(child, signal); }

}  // namespace

int main(int argc, char** argv) {
  const test::Bound bound{argc > 1 ? std::atof(argv[1]) : 0, argc > 2 ? std::atol(argv[2]) : 0};
  if (argc < 4 || bound.seconds <= 0 || bound.mebibytes <= 0)
    return std::fputs("usage: ricci-bounded SECONDS MEBIBYTES PROGRAM ARGUMENT ...\n", stderr), 2;
  child = ::fork();
  if (child < 0) return std::perror("fork"), 2;
  if (child == 0) {
    ::setpgid(0, 0);
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::execvp(argv[3], argv + 3);
    std::fprintf(stderr, "%s: %s\n", argv[3], std::strerror(errno));
    ::_exit(127);
  }
  ::setpgid(child, child);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, pass_on);
  const test::Watched watched = test::watch(child, bound);
  if (!watched.fault.empty()) return std::fprintf(stderr, "%s: killed: %s\n", argv[3], watched.fault.c_str()), 124;
  return WIFSIGNALED(watched.status) ? 128 + WTERMSIG(watched.status) : WEXITSTATUS(watched.status);
}
