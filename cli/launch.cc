#include "cli/launch.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "graphs/error.h"

namespace doppler::cli {
namespace {

std::vector<std::string>& arguments() {
  static std::vector<std::string> words;
  return words;
}

std::string quoted_for_shell(const std::string& word) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// The words that the process was started with.
std::vector<std::string> words_of_process() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

}  // namespace

void note_arguments(int argc, const char* const* argv) {
  arguments().assign(argv + std::min(argc, 1), argv + argc);
}

const std::vector<std::string>& given_arguments() { return arguments(); }

std::string typed_command() {
  std::string text = "doppler-gym";
  for (const std::string& word : arguments()) text += " " + quoted_for_shell(word);
  return text;
}

std::vector<std::string> own_command() {
  std::vector<std::string> words = words_of_process();
  const std::vector<std::string>& given = arguments();
  if (words.size() <= given.size() || !std::equal(given.rbegin(), given.rend(), words.rbegin())) {
    throw RunError(
        "agents run in processes of their own, and this one cannot be started again: start the "
        "command from a shell, as doppler-gym or as a Python file that calls doppler_gym.main(), "
        "or use doppler_gym.leaderboard.run() in Python");
  }
  words.resize(words.size() - given.size());
  return words;
}

}  // namespace doppler::cli
