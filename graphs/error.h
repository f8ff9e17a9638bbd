// A user's mistake, told once: what is wrong, where, and how to mend it.
#pragma once

#include <stdexcept>
#include <string>

namespace doppler {

// The base of everything that this library throws. what() is one message a person can act on; it
// never holds a stack trace. The command exits with exit_code().
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  // 2 for bad use (the default), 1 for a run that failed.
  [[nodiscard]] virtual int exit_code() const { return 2; }
};

// An argument, option or name that is not accepted.
class UsageError : public Error {
 public:
  using Error::Error;
};

// A value (graph, cluster, assignment, task) that breaks its own rules. Lists every fault found.
class InvalidError : public Error {
 public:
  using Error::Error;
};

// A file whose content is refused: "file:line:column: what; how to mend it".
class ParseError : public Error {
 public:
  using Error::Error;
};

// A file that cannot be read or written, or a run that failed although its use was right.
class RunError : public Error {
 public:
  using Error::Error;
  [[nodiscard]] int exit_code() const override { return 1; }
};

}  // namespace doppler
