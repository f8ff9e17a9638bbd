#include "executor/runtime/machine_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "graphs/error.h"

namespace doppler::runtime {
namespace {

constexpr mode_t kEveryone = 0666;

}  // namespace

std::string MachineLock::path() {
  const char* named = std::getenv("DOPPLER_GYM_LOCK");
  if (named != nullptr && *named != '\0') return named;
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  return ((error ? std::filesystem::path("/tmp") : folder) / "doppler-gym.lock").string();
}

MachineLock::MachineLock() {
  const std::string name = path();
  // Another user's file may be open for reading alone; that is enough to lock it.
  file_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kEveryone);
  if (file_ >= 0) {
    static_cast<void>(::fchmod(file_, kEveryone));  // past the umask, if it is ours
  } else {
    file_ = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  }
  if (file_ < 0) {
    throw RunError("cannot open the lock of real executions, " + name + ": " +
                   std::strerror(errno) + "; name another file in DOPPLER_GYM_LOCK");
  }
  while (::flock(file_, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    const int why = errno;
    ::close(file_);
    throw RunError("cannot take the lock of real executions, " + name + ": " + std::strerror(why));
  }
}

MachineLock::~MachineLock() { ::close(file_); }

}  // namespace doppler::runtime
