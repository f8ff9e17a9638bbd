// What a subcommand states of itself: options, examples, action. Keeps the parsing library in one
// source file.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace doppler::cli {

// An option or argument as --help shows it.
struct OptionText {
  std::string name;     // "--seed"; "--task,--tasks"; a positional argument without dashes: "FILE"
  std::string value;    // what stands for its value: "N"; "FILE..." for any number of words
  std::string summary;  // one sentence or two
};

// What --help says of a subcommand beside its options.
struct HelpText {
  const char* summary;       // one line, also in the list of commands
  const char* details = "";  // what it prints, and what that means; line breaks do not count
  const char* examples;      // whole command lines, one a line
};

// Takes the values that the user gave, in order, and stores them. Throws UsageError that begins
// with the option's name for what it does not accept.
using Accept = std::function<void(const std::string& name, const std::vector<std::string>& values)>;

// An option that is given twice is an error, except for lists, which collect `a,b` and repeated
// options alike (commas within parentheses do not separate).
Accept into(std::string& target);
Accept into(std::optional<std::string>& target);
Accept into(std::vector<std::string>& target);
// Whole numbers in decimal, from `minimum` to `maximum`.
Accept into(std::int64_t& target, std::int64_t minimum,
            std::int64_t maximum = std::numeric_limits<std::int64_t>::max());
Accept into(std::optional<std::int64_t>& target, std::int64_t minimum,
            std::int64_t maximum = std::numeric_limits<std::int64_t>::max());
// Finite decimal numbers, from `minimum` to `maximum`.
Accept into(double& target, double minimum, double maximum = std::numeric_limits<double>::max());
Accept into(std::optional<double>& target, double minimum,
            double maximum = std::numeric_limits<double>::max());

// A handle on one (sub)command while it is described; cheap to copy.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  Command add(const std::string& name, const HelpText& help);

  // The heading in --help for the options that follow.
  void group(const std::string& title) { group_ = title; }
  void option(const OptionText& text, Accept accept, bool required = false);
  void flag(const std::string& name, const std::string& summary, bool& target);
  // Two flags that exclude each other: `on` stores true, `off` stores false.
  void flags(const std::string& on, const std::string& off, const std::string& summary,
             std::optional<bool>& target);
  // What the command does once its line is read.
  void run(std::function<void()> action);

 private:
  CLI::App* app_;
  std::string group_ = "Options";
};

// Reads the line, prints help or version, or runs the command that it names. Throws UsageError with
// the nearest names for a command or option that does not exist.
void run_command_line(int argc, const char* const* argv,
                      const std::function<void(Command&)>& add_commands);

// The parts of a list `a,b(c,d)`: commas within parentheses do not separate. Throws UsageError for
// an empty part or parentheses that do not match; `name` is for messages.
std::vector<std::string> split_list(const std::string& name, const std::string& text);

}  // namespace doppler::cli
