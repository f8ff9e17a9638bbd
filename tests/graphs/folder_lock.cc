#include "graphs/folder_lock.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "graphs/error.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;

TEST_CASE("One has a folder, until it lets go of it") {
  const testing::TemporaryFolder root;
  const std::string path = root.path("made/with/parents");
  auto lock = FolderLock::try_take(path);
  REQUIRE(lock);
  CHECK(fs::is_empty(path));
  CHECK(!FolderLock::try_take(path));
  CHECK(FolderLock::try_take(root.path("made")));

  FolderLock moved = *std::move(lock);
  CHECK(!FolderLock::try_take(path));
  moved = FolderLock();
  const auto again = FolderLock::try_take(path);
  CHECK(again);

  // The lock is of the folder, not of its name.
  fs::remove_all(path);
  CHECK(FolderLock::try_take(path));
}

TEST_CASE("A process that is killed gives its folder back") {
  const testing::TemporaryFolder folder;
  std::array<int, 2> ready{};
  REQUIRE(::pipe(ready.data()) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto lock = FolderLock::try_take(folder.path());
    const char taken = lock ? 'y' : 'n';
    if (::write(ready[1], &taken, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char taken = 0;
  CHECK(::read(ready[0], &taken, 1) == 1);
  CHECK(taken == 'y');
  CHECK(!FolderLock::try_take(folder.path()));
  ::kill(child, SIGKILL);
  CHECK(::waitpid(child, nullptr, 0) == child);
  CHECK(FolderLock::try_take(folder.path()));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("What is no folder cannot be locked") {
  const testing::TemporaryFolder root;
  const std::string file = root.file("file", "content");
  for (const std::string& path : {file, file + "/inner", root.path(std::string(300, 'n'))}) {
    CAPTURE(path);
    try {
      static_cast<void>(FolderLock::try_take(path));
      FAIL("no error");
    } catch (const RunError& error) {
      CHECK(std::string(error.what()).starts_with(path + ": cannot "));
    }
  }
}

}  // namespace
}  // namespace doppler
