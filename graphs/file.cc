#include "graphs/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

// Written under a name of its own in the target's folder; removed unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target)
      : name_(target + ".XXXXXX"), file_(::mkostemp(name_.data(), O_CLOEXEC)) {
    if (file_.number() < 0) fail(target, "write", errno);
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
  const auto refuse_size = [&] {
    throw RunError(path + ": cannot read: larger than " + std::to_string(max_bytes) + " bytes");
  };
  const auto n_expected = static_cast<std::size_t>(status.st_size);
  if (n_expected > max_bytes) refuse_size();
  std::string content;
  std::size_t n_bytes = 0;
  // One byte beyond the size, so that the read that finds the end needs no larger buffer.
  content.resize(n_expected + 1);
  while (true) {
    if (n_bytes == content.size()) content.resize(2 * content.size());
    const ssize_t n_read =
        ::read(file.number(), content.data() + n_bytes, content.size() - n_bytes);
    if (n_read < 0 && errno == EINTR) continue;
    if (n_read < 0) fail(path, "read", errno);
    if (n_read == 0) break;
    n_bytes += static_cast<std::size_t>(n_read);
    if (n_bytes > max_bytes) refuse_size();
  }
  content.resize(n_bytes);
  return content;
}

void write_file(const std::string& path, std::string_view content) {
  check_name(path, "write");
  namespace fs = std::filesystem;
  std::error_code code;
  // A symbolic link stays one: the file that it names is replaced.
  const std::string target = fs::is_symlink(fs::symlink_status(path, code))
                                 ? fs::weakly_canonical(path, code).string()
                                 : path;
  if (code && code != std::errc::no_such_file_or_directory) fail(path, "write", code.value());
  mode_t mode = default_mode();
  struct stat status = {};
  if (::stat(target.c_str(), &status) == 0) {
    require_regular(path, "write", status.st_mode);
    mode = status.st_mode & 07777;
    if (::faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) != 0) fail(path, "write", errno);
  }
  TemporaryFile temporary(target);
  temporary.write(content, mode, path);
  temporary.rename(target);
  // The new name itself reaches the disk with its folder; not every file system can sync a folder,
  // and the file is whole either way.
  const fs::path folder = fs::path(target).parent_path();
  const Descriptor opened(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.number() >= 0) ::fsync(opened.number());
}

}  // namespace doppler
