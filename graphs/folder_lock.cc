#include "graphs/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "graphs/error.h"

namespace doppler {
namespace {

constexpr int kTries = 10;

[[noreturn]] void fail(const std::string& path, const char* what, const std::error_code& code) {
  throw RunError(path + ": cannot " + what + ": " + code.message());
}

std::error_code last_error() { return {errno, std::generic_category()}; }

bool is_at(int descriptor, const std::string& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

}  // namespace

std::optional<FolderLock> FolderLock::try_take(const std::string& path) {
  // Who had it may have removed it between the steps.
  std::error_code code;
  for (int i = 0; i < kTries; ++i) {
    std::filesystem::create_directories(path, code);
    if (code) fail(path, "make this folder", code);
    FolderLock lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (lock.descriptor_ < 0) {
      code = last_error();
      if (code == std::errc::no_such_file_or_directory) continue;
      fail(path, "open the folder", code);
    }
    if (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return std::nullopt;
      fail(path, "lock the folder", last_error());
    }
    if (is_at(lock.descriptor_, path)) return lock;
    code = std::make_error_code(std::errc::no_such_file_or_directory);
  }
  fail(path, "lock the folder", code);
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace doppler
