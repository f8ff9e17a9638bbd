// What the command gives back: text on standard output, files, one message on standard error.
#pragma once

#include <string>
#include <string_view>

namespace doppler::cli {

// The reader of standard output went away (`doppler-gym tasks | head -1`); nothing is wrong.
struct BrokenPipe {};

// Writes all of it to standard output. Throws BrokenPipe, or RunError for a full disk.
void print(std::string_view text);

// Writes a file whole or not at all, also if Ctrl-C comes. Throws RunError that names the path.
void save(const std::string& path, std::string_view content);
// Throws RunError if save() could not work there as things are, so that a slip in a path is told
// before hours of work and not after. Accepts an empty path.
void check_can_save(const std::string& path);
// save() if there is a path, else print().
void deliver(const std::string& path, std::string_view content);

// A message that fits on a screen and a terminal: control characters and what is not UTF-8 are
// shown as \xNN, and beyond 1,800 bytes it ends with how much was left out.
std::string readable_message(std::string_view message);

}  // namespace doppler::cli
