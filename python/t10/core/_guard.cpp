// t10.core._guard: an error in native code that is not ours ends the process with a message instead of a core dump.
//
// What runs in the handler is async-signal-safe: it writes bytes that were made before and exits. It runs on a stack of
// its own, since recursion without end is one of the errors.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace nb = nanobind;

namespace {

constexpr std::array<int, 6> kSignals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGVTALRM};
constexpr std::size_t kStackBytes = 64 * 1024;

// A message per signal, so that the handler has nothing to put together.
std::array<std::string, kSignals.size()> texts;
std::array<struct sigaction, kSignals.size()> before;
int exit_code = 70;
bool is_armed = false;

void end_process(int number) {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (kSignals[i] != number) continue;
    const std::string &text = texts[i];
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t n = ::write(STDERR_FILENO, text.data() + done, text.size() - done);
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
  }
  ::_exit(exit_code);
}

std::string with_name(std::string text, const char *name) {
  const std::string mark = "SIGNAL";
  const auto at = text.find(mark);
  return at == std::string::npos ? text : text.replace(at, mark.size(), name);
}

void arm(const std::string &text, int code) {
  constexpr std::array<const char *, kSignals.size()> names{"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT",
                                                           "out of time"};
  static std::vector<char> stack(kStackBytes);
  for (std::size_t i = 0; i < kSignals.size(); ++i) texts[i] = with_name(text, names[i]);
  exit_code = code;
  if (is_armed) return;
  stack_t own{};
  own.ss_sp = stack.data();
  own.ss_size = stack.size();
  ::sigaltstack(&own, nullptr);
  struct sigaction action {};
  action.sa_handler = end_process;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &before[i]);
  is_armed = true;
}

void disarm() {
  if (!is_armed) return;
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before[i], nullptr);
  is_armed = false;
}

}  // namespace

NB_MODULE(_guard, module) {
  module.doc() = "What a process says when native code ends it (see _guard.pyi).";
  module.def("arm", &arm, nb::arg("text"), nb::arg("code"));
  module.def("disarm", &disarm);
  module.def("allow_leaks", [] { nb::set_leak_warnings(false); });
}
