// A folder that one process has at a time.
#pragma once

#include <optional>
#include <string>

namespace doppler {

// The exclusive lock of a folder, held as long as this lives; the system gives it back whatever
// ends the process. It is advisory and leaves no file behind. Two locks of one folder exclude each
// other within a process as well.
class FolderLock {
 public:
  // Nothing if another holds it. The folder is made, with its parents, if it is not there. Throws
  // RunError that names the path if it cannot be made, opened or locked.
  static std::optional<FolderLock> try_take(const std::string& path);

  FolderLock() = default;  // of nothing
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  ~FolderLock();

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_ = -1;
};

}  // namespace doppler
