#include "graphs/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "graphs/error.h"

namespace doppler {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& verb, int code) {
  throw RunError(path + ": cannot " + verb + ": " + std::generic_category().message(code));
}

// An open file that is closed in every case.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }
  // Closes now; 0 or an error code.
  int close() { return ::close(std::exchange(number_, -1)) == 0 ? 0 : errno; }

 private:
  int number_;
};

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

void require_regular(const std::string& path, const std::string& verb, mode_t mode) {
  if (S_ISREG(mode)) return;
  throw RunError(path + ": cannot " + verb + ": it is " + kind_of(mode) + "; name a regular file");
}

void check_name(const std::string& path, const std::string& verb) {
  if (path.empty()) throw RunError("cannot " + verb + " a file without a name");
  if (path.find('\0') != std::string::npos) {
    throw RunError(path.substr(0, path.find('\0')) + ": cannot " + verb +
                   ": the name holds a zero byte");
  }
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// Where a chain of symbolic links ends, whether or not there is a file yet.
std::string behind_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // as many as the system follows
  namespace fs = std::filesystem;
  fs::path target = path;
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code code;
    const fs::path next = fs::read_symlink(target, code);
    if (code) return target.string();  // no link
    target = target.parent_path() / next;
  }
  fail(path, "write", ELOOP);
}

// A name for mkostemp() beside the target: the target's own, shortened if no more than that fits.
std::string temporary_name(const std::string& target) {
  constexpr std::size_t kMostBytes = 240;  // file systems take 255
  const std::size_t slash = target.rfind('/');
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  const bool is_legal = target.size() - begin <= NAME_MAX;  // else the system shall refuse it
  return (is_legal ? target.substr(0, begin + kMostBytes) : target) + ".XXXXXX";
}

// Written under a name of its own in the target's folder; removed unless it was renamed.
class TemporaryFile {
 public:
  // `shown` is the user's name for the target.
  TemporaryFile(const std::string& target, const std::string& shown)
      : name_(temporary_name(target)), file_(::mkostemp(name_.data(), O_CLOEXEC)) {
    if (file_.number() >= 0) return;
    const int code = errno;
    const std::string folder = folder_of(target);
    std::error_code ignored;
    if (code != ENOENT || std::filesystem::is_directory(folder, ignored)) {
      fail(shown, "write", code);
    }
    throw RunError(shown + ": cannot write: there is no folder '" + folder + "'; make it first");
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }

  void write(std::string_view content, mode_t mode, const std::string& target) {
    while (!content.empty()) {
      const ssize_t n_written = ::write(file_.number(), content.data(), content.size());
      if (n_written < 0 && errno == EINTR) continue;
      if (n_written < 0) fail(target, "write", errno);
      content.remove_prefix(static_cast<std::size_t>(n_written));
    }
    if (::fchmod(file_.number(), mode) != 0) fail(target, "write", errno);
    if (::fsync(file_.number()) != 0) fail(target, "write", errno);
    if (const int code = file_.close(); code != 0) fail(target, "write", code);
  }

  void rename(const std::string& target) {
    if (::rename(name_.c_str(), target.c_str()) != 0) fail(target, "write", errno);
    name_.clear();
  }

 private:
  std::string name_;
  Descriptor file_;
};

// Everything from an open file on; `path` is its name in messages, `n_expected` how many bytes it
// seems to have.
std::string read_to_end(int file, const std::string& path, std::size_t n_expected,
                        std::size_t max_bytes) {
  const auto refuse_size = [&] {
    throw RunError(path + ": cannot read: larger than " + std::to_string(max_bytes) + " bytes");
  };
  if (n_expected > max_bytes) refuse_size();
  std::string content;
  std::size_t n_bytes = 0;
  // One byte beyond the size, so that the read that finds the end needs no larger buffer.
  content.resize(n_expected + 1);
  while (true) {
    if (n_bytes == content.size()) {
      constexpr std::size_t kLeastGrowth = 65536;
      content.resize(std::min(n_bytes + std::max(n_bytes, kLeastGrowth), max_bytes + 1));
    }
    const ssize_t n_read = ::read(file, content.data() + n_bytes, content.size() - n_bytes);
    if (n_read < 0 && errno == EINTR) continue;
    if (n_read < 0 && errno == EAGAIN) {
      // Standard input may be non-blocking; wait for more.
      pollfd input{file, POLLIN, 0};
      ::poll(&input, 1, -1);
      continue;
    }
    if (n_read < 0) fail(path, "read", errno);
    if (n_read == 0) break;
    n_bytes += static_cast<std::size_t>(n_read);
    if (n_bytes > max_bytes) refuse_size();
  }
  content.resize(n_bytes);
  return content;
}

// The permissions that a new file of this process gets.
mode_t default_mode() {
  // The mask can only be read by setting it; this reads it once, before threads of ours write
  // files.
  static const mode_t mask = [] {
    const mode_t current = ::umask(022);
    ::umask(current);
    return current;
  }();
  return 0666 & ~mask;
}

}  // namespace

std::string read_file(const std::string& path, std::size_t max_bytes) {
  check_name(path, "read");
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) fail(path, "read", errno);
  struct stat status = {};
  if (::fstat(file.number(), &status) != 0) fail(path, "read", errno);
  require_regular(path, "read", status.st_mode);
  const auto n_expected = static_cast<std::size_t>(status.st_size);
  return read_to_end(file.number(), path, n_expected, max_bytes);
}

std::string read_standard_input(std::size_t max_bytes) {
  return read_to_end(STDIN_FILENO, "standard input", 0, max_bytes);
}

void write_file(const std::string& path, std::string_view content) {
  check_name(path, "write");
  mode_t mode = default_mode();
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0) {
    require_regular(path, "write", status.st_mode);
    mode = status.st_mode & 07777;
    if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) fail(path, "write", errno);
  }
  // A symbolic link stays one: the file that it names is replaced, or made.
  const std::string target = behind_links(path);
  TemporaryFile temporary(target, path);
  temporary.write(content, mode, path);
  temporary.rename(target);
  // The new name itself reaches the disk with its folder; not every file system can sync a folder,
  // and the file is whole either way.
  const Descriptor opened(::open(folder_of(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.number() >= 0) ::fsync(opened.number());
}

std::string file_name_of(std::string_view text) {
  constexpr std::string_view kPlain = "._-+=,@()";
  constexpr std::size_t kMostBytes = 100;
  std::string name;
  for (char c : text.substr(0, kMostBytes)) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool is_digit = c >= '0' && c <= '9';
    name += is_letter || is_digit || kPlain.find(c) != std::string_view::npos ? c : '_';
  }
  return name;
}

}  // namespace doppler
