// The built command as a process, and small inputs for it.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace doppler::testing {

struct Answer {
  int exit_code = 0;       // 128 + the signal's number if a signal ended it, as in a shell
  bool signalled = false;  // a signal ended it, rather than its own exit
  std::string out = "";
  std::string err = "";
};

// A run of doppler-gym under way; ended by force if it is destroyed before wait().
class Process {
 public:
  // `input` stands for what is on standard input.
  explicit Process(const std::vector<std::string>& arguments, const std::string& input = "",
                   const char* command = DOPPLER_COMMAND);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Waits until the process is ready for Ctrl-C, or gone.
  void await_ready() const;
  void send(int signal) const;
  // Nobody reads standard output any longer.
  void close_output();
  // Reads all output and waits for the end.
  Answer wait();

 private:
  pid_t id_ = -1;
  int input_ = -1;
  int out_ = -1;
  int err_ = -1;
};

// Runs the command to its end.
Answer run(const std::vector<std::string>& arguments, const std::string& input = "");
// The same for the command that knows the agents of the tests.
Answer run_of_tests(const std::vector<std::string>& arguments);
// The same, for a run that must succeed silently and print one JSON value.
nlohmann::json run_json(const std::vector<std::string>& arguments);
// For a run that must fail: its exit code is `exit_code`, standard output is empty, standard error
// is one message shorter than 2000 characters that holds each of `words`.
void check_refused(const std::vector<std::string>& arguments, int exit_code,
                   const std::vector<std::string>& words);

// In the paper's text format: nodes 0 -> 1, 2 -> 3 with compute 1, 2, 3, 1 and one output of 1
// each.
inline constexpr const char* kDiamond = "5\n4\n0,0,1,2\n1,2,3,3\n1,1\n2,1\n3,1\n1,1\n";

}  // namespace doppler::testing
