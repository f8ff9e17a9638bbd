// How this very command is started again, for work in a process of its own.
#pragma once

#include <string>
#include <vector>

namespace doppler::cli {

// The words after the program's name, kept for those below. run_command() calls it.
void note_arguments(int argc, const char* const* argv);

// These words.
const std::vector<std::string>& given_arguments();

// The command line as a user would type it: "doppler-gym leaderboard run --suite 'my suite.json'".
std::string typed_command();

// The words that start this program without its arguments: {"doppler-gym"}, or {"python",
// "mine.py"}. Throws RunError where the arguments are not those that the process was started with,
// as in a Python session.
std::vector<std::string> own_command();

}  // namespace doppler::cli
