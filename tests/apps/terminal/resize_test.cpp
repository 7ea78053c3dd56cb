// The progress bar on terminals that become narrower or wider while it stands there.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "apps/terminal/progress.h"

using namespace ricci::apps;

namespace {

// The screen of a terminal: what it shows of the bytes it is sent. Terminals do one of two things with a line that is longer than the
// new width: most break it into rows, with the cursor on the same character; others cut it off, with the cursor in the same column.
class Screen {
 public:
  Screen(int width, bool breaks) : width_(width), breaks_(breaks) {}

  void resize(int width) {
    width_ = width;
    if (breaks_) return;
    for (std::string& line : lines_) line = line.substr(0, columns());
    at_ = std::min(at_, columns() - 1);
  }

  void write(const std::string& bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes.substr(i, 3) == "\x1b[J" || bytes.substr(i, 3) == "\x1b[K") {
        erase(bytes[i += 2] == 'J');
      } else if (bytes[i] == '\r') {
        at_ -= at_ % columns();
      } else if (bytes[i] == '\n') {
        lines_.resize(++line_ + 1), at_ = 0;
      } else {
        std::string& line = lines_[line_];
        line.resize(std::max(line.size(), at_ + 1), ' ');
        line[at_++] = bytes[i];
      }
    }
  }

  // As rows, without what is blank at their ends.
  std::vector<std::string> rows() const {
    std::vector<std::string> rows;
    for (const std::string& line : lines_)
      for (size_t at = 0; at == 0 || at < line.size(); at += columns()) {
        const std::string row = line.substr(at, columns());
        rows.push_back(row.substr(0, row.find_last_not_of(' ') + 1));
      }
    while (!rows.empty() && rows.back().empty()) rows.pop_back();
    return rows;
  }

 private:
  size_t columns() const { return static_cast<size_t>(width_); }
  // To the end of the screen, or of the row.
  void erase(bool all) {
    std::string& line = lines_[line_];
    const size_t end = all ? line.size() : std::min(line.size(), at_ - at_ % columns() + columns());
    if (at_ < end) end == line.size() ? line.resize(at_) : void(line.replace(at_, end - at_, end - at_, ' '));
    if (all) lines_.resize(line_ + 1);
  }

  int width_;
  bool breaks_;
  std::vector<std::string> lines_ = {""};
  size_t line_ = 0, at_ = 0;  // the cursor's place, in whole lines
};

// A pseudo-terminal; what is written to `out` comes out of taken().
struct Terminal {
  explicit Terminal(int width) {
    REQUIRE(::openpty(&master, &slave, nullptr, nullptr, nullptr) == 0);
    REQUIRE(::fcntl(master, F_SETFL, O_NONBLOCK) == 0);
    out = ::fdopen(slave, "w");
    REQUIRE(out);
    resize(width);
  }
  ~Terminal() { std::fclose(out), ::close(master); }
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

TEST_CASE("progress: the screen of these tests shows what terminals show") {
  for (const bool breaks : {true, false}) {
    Screen screen(10, breaks);
    screen.write("one\r\nabcdefgh");
    screen.resize(4);
    CHECK(screen.rows() == (breaks ? std::vector<std::string>{"one", "abcd", "efgh"} : std::vector<std::string>{"one", "abcd"}));
    screen.write("\r\x1b[K!");  // a bar that is erased from the row of its end leaves its beginning
    CHECK(screen.rows() == (breaks ? std::vector<std::string>{"one", "abcd", "efgh", "!"} : std::vector<std::string>{"one", "!"}));
  }
}

TEST_CASE("progress: a terminal that is resized shows one bar, as wide as it is now, and every line above") {
  for (const bool breaks : {true, false}) {
    CAPTURE(breaks);
    const Terminal terminal(100);
    Screen screen(100, breaks);
    double now = 0;
    Progress progress({.steps = 1000, .out = terminal.out, .terminal = true, .seconds = [&] { return now; }});
    progress.line("validation loss 2.1");
    int64_t step = 100;
    for (const int width : {100, 60, 30, 17, 90, 12, 100}) {
      CAPTURE(width);
      terminal.resize(width);
      screen.resize(width);
      now += 1;
      step += 100;
      progress.update(step, step, "loss 1.672");
      screen.write(terminal.taken());
      const std::vector<std::string> rows = screen.rows();
      // On a terminal of the second kind the line above was cut off as well.
      const size_t above = breaks && width < 19 ? 2 : 1;
      REQUIRE(rows.size() == above + 1);
      CHECK(rows.back().starts_with(std::string("step ") + with_commas(step)));
      CHECK(rows.back().size() < static_cast<size_t>(width));
    }
    progress.erase();
    screen.write(terminal.taken());
    CHECK(screen.rows().size() == 1);
  }
}
