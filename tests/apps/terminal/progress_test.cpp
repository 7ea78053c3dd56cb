// The characters of the progress bar, with the test's clock and width, and on terminals that change their width.
#include "apps/terminal/progress.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/terminal/numbers.h"
#include "tests/data/files.h"

using namespace ricci::apps;
using test_data::contains;
using test_data::ScopedVariable;

namespace {

// A Progress that writes into a file.
class Recorder {
 public:
  explicit Recorder(ProgressOptions options) {
    REQUIRE(file_);
    options.out = file_;
    options.seconds = [this] { return now; };
    progress = std::make_unique<Progress>(options);
  }
  ~Recorder() {
    progress.reset();
    std::fclose(file_);
  }
  // The text since the last call.
  std::string taken() {
    std::string text(4096, ' ');
    text.resize(static_cast<size_t>(std::max<ssize_t>(::pread(::fileno(file_), text.data(), text.size(), seen_), 0)));
    seen_ += std::ssize(text);
    return text;
  }

  double now = 1000;
  std::unique_ptr<Progress> progress;

 private:
  std::FILE* file_ = std::tmpfile();
  off_t seen_ = 0;
};

const std::string kErase = "\r\x1b[J";

// A pseudo-terminal. taken() returns the text written to `out`.
struct Terminal {
  explicit Terminal(int width) {
    REQUIRE(::openpty(&master, &slave, nullptr, nullptr, nullptr) == 0);
    REQUIRE(::fcntl(master, F_SETFL, O_NONBLOCK) == 0);
    out = ::fdopen(slave, "w");
    REQUIRE(out);
    resize(width);
  }
  ~Terminal() {
    std::fclose(out);
    ::close(master);
  }
  void resize(int width) const {
    const winsize size = {24, static_cast<unsigned short>(width), 0, 0};
    REQUIRE(::ioctl(slave, TIOCSWINSZ, &size) == 0);
  }
  std::string taken() const {
    std::string text;
    char block[4096];
    for (ssize_t count; (count = ::read(master, block, sizeof block)) > 0;) text.append(block, static_cast<size_t>(count));
    return text;
  }
  int master = -1, slave = -1;
  std::FILE* out = nullptr;
};

}  // namespace

TEST_CASE("progress: numbers and times for reading") {
  for (const auto& [number, text] :
      {std::pair(0, "0"), {999, "999"}, {1000, "1,000"}, {1234567, "1,234,567"}, {-123, "-123"}, {-1234, "-1,234"}})
    CHECK(with_commas(number) == text);
  for (const auto& [number, text] : {std::pair(0.0, "0"), {950.4, "950"}, {999.6, "1.0k"}, {15'240.0, "15.2k"}, {152'400.0, "152k"},
           {3'100'000.0, "3.1M"}, {5e15, "5000T"}})
    CHECK(short_number(number) == text);
  for (const auto& [seconds, text] :
      {std::pair(0.4, "0:00"), {41.0, "0:41"}, {59.6, "1:00"}, {7390.0, "2:03:10"}, {-5.0, "0:00"}, {1e300, "1000000:00:00"}})
    CHECK(clock_time(seconds) == text);
}

TEST_CASE("progress: a bar with speed and time left") {
  Recorder r({.steps = 2000, .terminal = true, .width = 120});
  r.progress->update(0, 0);
  CHECK(r.taken() == kErase + "step 0/2,000 [>" + std::string(39, ' ') + "]   0%\r");
  r.now += 10;
  r.progress->update(500, 80'000, "loss 1.672");
  CHECK(r.taken() == kErase + "step 500/2,000 [==========>" + std::string(29, ' ') + "]  25%  loss 1.672  8.0k tokens/s  0:30 left\r");
  r.now += 10;
  r.progress->update(2000, 320'000);
  CHECK(r.taken() == kErase + "step 2,000/2,000 [" + std::string(40, '=') + "] 100%  16.0k tokens/s  0:00 left\r");
}

TEST_CASE("progress: redrawn at most ten times a second") {
  Recorder r({.steps = 100'000, .terminal = true, .width = 80});
  int drawn = 0;
  for (int step = 1; step <= 5000; ++step) {
    r.now += 0.001;
    r.progress->update(step, step);
    drawn += r.taken().empty() ? 0 : 1;
  }
  CHECK(drawn <= 51);
  CHECK(drawn >= 45);
}

TEST_CASE("progress: no line is longer than the terminal less one column") {
  for (int width = 1; width <= 130; ++width) {
    Recorder r({.steps = 2000, .terminal = true, .width = width});
    r.now += 5;
    r.progress->update(700, 9000, "loss 1.672");
    std::string text = r.taken().substr(kErase.size());
    CAPTURE(text);
    REQUIRE(text.ends_with('\r'));  // the cursor waits on the first character
    text.pop_back();
    const size_t most = static_cast<size_t>(std::max(width - 1, 1));
    CHECK(text.size() <= most);
    CHECK(text.size() >= std::min<size_t>(most, 50));
    CHECK(text.find('\n') == text.npos);
  }
}

TEST_CASE("progress: lines stand above the bar, and the end leaves nothing of it") {
  std::string all;
  {
    Recorder r({.steps = 10, .terminal = true, .width = 60});
    r.now += 1;
    r.progress->update(1, 10);
    r.taken();
    r.progress->line("validation loss 2.1");
    CHECK(r.taken() == kErase + "validation loss 2.1\n");
    r.progress->update(2, 20);  // is drawn again immediately
    CHECK(contains(r.taken(), "step 2/10"));
    r.progress.reset();
    CHECK(r.taken() == kErase);
  }
}

TEST_CASE("progress: without a terminal, plain lines every ten seconds") {
  Recorder r({.steps = 1000, .terminal = false});
  std::string all;
  for (int step = 1; step <= 35; ++step) {
    r.now += 1;
    r.progress->update(step, step * 100, "loss 3.0");
    all += r.taken();
  }
  CHECK(all == "step 10/1,000   1%  loss 3.0  100 tokens/s  16:30 left\n"
               "step 20/1,000   2%  loss 3.0  100 tokens/s  16:20 left\n"
               "step 30/1,000   3%  loss 3.0  100 tokens/s  16:10 left\n");
  r.progress->line("done");
  CHECK(r.taken() == "done\n");
}

TEST_CASE("progress: a file is not a terminal") {
  std::FILE* file = std::tmpfile();
  REQUIRE(file);
  {
    Progress progress({.steps = 5, .out = file});
    progress.update(1, 1);
    progress.line("a line");
  }
  std::rewind(file);
  char text[100] = {};
  const size_t count = std::fread(text, 1, sizeof text - 1, file);
  CHECK(std::string(text, count) == "a line\n");
  std::fclose(file);
}

TEST_CASE("progress: mpirun gives a terminal even to processes with output to a file") {
  const ScopedVariable kind("TERM", "xterm");
  for (const char* const variable : {"", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const ScopedVariable launcher(*variable ? variable : "RICCI_NONE", "2");
    const Terminal terminal(80);
    double now = 100;
    Progress progress({.steps = 10, .out = terminal.out, .seconds = [&] { return now; }});
    now += 20;
    progress.update(5, 100);
    CHECK(contains(terminal.taken(), "\x1b") == !*variable);
  }
}

TEST_CASE("progress: the speed forgets what is older than half a minute, and starts again after a resume") {
  Recorder r({.steps = 10'000, .first_step = 5000, .terminal = false});
  int64_t step = 5000, tokens = 0;
  for (int i = 0; i < 100; ++i) r.now += 1, r.progress->update(++step, tokens += 10);
  r.taken();
  for (int i = 0; i < 40; ++i) r.now += 1, r.progress->update(step += 4, tokens += 40);
  const std::string line = r.taken();
  CHECK(contains(line, "step 5,260/10,000  52%  40 tokens/s  19:45 left\n"));  // 4740 steps at 4 a second
}

TEST_CASE("progress: output that cannot be written is dropped") {
  std::FILE* const full = std::fopen("/dev/full", "w");
  REQUIRE(full);
  for (const bool terminal : {true, false}) {
    Progress progress(
        {.steps = 10, .out = full, .terminal = terminal, .width = 40, .seconds = [now = 0.0]() mutable { return now += 20; }});
    CHECK_NOTHROW(progress.update(1, 1, std::string(100000, 'x')));
    CHECK_NOTHROW(progress.line(std::string(100000, 'x')));
  }
  std::fclose(full);
}

// Erasing from the first character of the line to the end of the screen erases the bar, even if a terminal breaks or cuts long lines.
TEST_CASE("progress: the bar is as wide as the terminal is now, and is erased from the first character of its line") {
  const Terminal terminal(100);
  double now = 0;
  Progress progress({.steps = 1000, .out = terminal.out, .terminal = true, .seconds = [&] { return now; }});
  progress.line("validation loss 2.1");
  CHECK(terminal.taken() == "validation loss 2.1\r\n");
  int64_t step = 100;
  for (const int width : {100, 60, 30, 17, 90, 12, 100}) {
    CAPTURE(width);
    terminal.resize(width);
    now += 1;
    step += 100;
    progress.update(step, step, "loss 1.672");
    const std::string text = terminal.taken();
    CHECK(text.starts_with(kErase + "step " + with_commas(step)));
    CHECK(text.ends_with('\r'));
    CHECK(text.find('\n') == text.npos);
    CHECK(text.size() - kErase.size() - 1 < static_cast<size_t>(width));
  }
  progress.line("done");
  CHECK(terminal.taken() == kErase + "done\r\n");
}
