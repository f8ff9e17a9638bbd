#include "cli/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "cli/interrupt.h"
#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/parse_error.h"

namespace doppler::cli {
namespace {

constexpr std::size_t kLongestMessage = 1800;
constexpr char kDigits[] = "0123456789abcdef";

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace

void print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      throw BrokenPipe{};
    } else if (errno == EAGAIN) {
      // Whoever started this made the output non-blocking; wait until it takes more.
      pollfd output{STDOUT_FILENO, POLLOUT, 0};
      poll(&output, 1, -1);
    } else if (errno != EINTR) {
      throw RunError(std::string("standard output cannot be written: ") + std::strerror(errno));
    }
  }
}

void save(const std::string& path, std::string_view content) {
  const DelayInterrupt delay;
  write_file(path, content);
}

void check_can_save(const std::string& path) {
  if (path.empty()) return;
  std::error_code ignored;
  const std::filesystem::path target(path);
  if (std::filesystem::is_directory(target, ignored)) {
    throw RunError(path + ": cannot write: it is a directory; name a file in it");
  }
  const std::string folder = target.has_parent_path() ? target.parent_path().string() : ".";
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw RunError(path + ": cannot write: there is no folder '" + folder + "'; make it first");
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw RunError(path + ": cannot write in folder '" + folder + "': " + std::strerror(errno));
  }
}

void deliver(const std::string& path, std::string_view content) {
  if (path.empty()) {
    print(content);
  } else {
    save(path, content);
  }
}

std::string readable_message(std::string_view message) {
  std::string text;
  const bool is_utf8 = find_bad_utf8(message) == std::string_view::npos;
  for (char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n') || byte == 0x7F || (byte >= 0x80 && !is_utf8)) {
      text += {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 0xFU]};
    } else {
      text += c;
    }
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.size() <= kLongestMessage) return text;
  std::size_t cut = kLongestMessage;
  while (cut > 0 && continues_character(text[cut])) --cut;
  return text.substr(0, cut) + "... (" + std::to_string(text.size() - cut) + " more characters)";
}

}  // namespace doppler::cli
