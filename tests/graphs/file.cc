// Files are read and written whole, and every refusal names the path.
#include "graphs/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "graphs/error.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;

// Root may read and write everything: as long as this lives, root acts as the user "nobody".
class OrdinaryUser {
 public:
  OrdinaryUser() {
    if (is_root_) REQUIRE(::seteuid(65534) == 0);
  }
  ~OrdinaryUser() {
    if (is_root_ && ::seteuid(0) != 0) std::abort();
  }
  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;

 private:
  bool is_root_ = ::geteuid() == 0;
};

void check_refused(const std::string& path, const std::function<void()>& action) {
  CAPTURE(path);
  try {
    action();
    FAIL("no error");
  } catch (const RunError& error) {
    CHECK(std::string(error.what()).starts_with(path + ": cannot "));
    CHECK(std::string(error.what()).size() < path.size() + 120);
    CHECK(error.exit_code() == 1);
  }
}

mode_t mode_of(const std::string& path) {
  struct stat status = {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

TEST_CASE("What was written is read back, byte for byte") {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("file");
  std::string bytes;
  for (int i = 0; i < 100000; ++i) bytes += static_cast<char>(i * 37 % 256);
  for (const std::string& content :
       {std::string(), std::string("a"), std::string("a\0b\r\n", 5), bytes}) {
    write_file(path, content);
    CHECK(read_file(path) == content);
    CHECK(folder.names().size() == 1);
  }
}

TEST_CASE("A file beyond the limit is refused") {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("file");
  write_file(path, "12345");
  CHECK(read_file(path, 5) == "12345");
  check_refused(path, [&] { (void)read_file(path, 4); });
}

TEST_CASE("A file whose size the system does not know is read to its end") {
  const std::string status = read_file("/proc/self/status");
  CHECK(status.find("Pid:") != std::string::npos);
}

TEST_CASE("Missing files and folders, folders, pipes and devices are refused") {
  const testing::TemporaryFolder folder;
  const std::string pipe = folder.path("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  write_file(folder.path("file"), "x");
  for (const std::string& path : {folder.path("none"), folder.path("none/file"), folder.path(),
                                  pipe, std::string("/dev/null"), folder.path("file/inner")}) {
    check_refused(path, [&] { (void)read_file(path); });
  }
  for (const std::string& path :
       {folder.path("none/file"), folder.path(), pipe, std::string("/dev/null"),
        folder.path("file/inner"), folder.path(std::string(300, 'n'))}) {
    check_refused(path, [&] { write_file(path, "x"); });
  }
  CHECK_THROWS_AS(read_file(""), RunError);
  CHECK_THROWS_AS(write_file("", "x"), RunError);
  CHECK_THROWS_AS(read_file(std::string("a\0b", 3)), RunError);
  CHECK(folder.names().size() == 2);
}

TEST_CASE("No permission is a refusal") {
  const OrdinaryUser user;
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("file");
  write_file(path, "old");
  fs::permissions(path, fs::perms::none);
  check_refused(path, [&] { (void)read_file(path); });
  check_refused(path, [&] { write_file(path, "new"); });
  fs::permissions(path, fs::perms::owner_all);
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  check_refused(path, [&] { write_file(path, "new"); });
  CHECK(read_file(path) == "old");
}

TEST_CASE("A write that fails leaves the old file and no other") {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("file");
  write_file(path, "old");
  // The limit on file sizes makes the write fail half-way.
  rlimit before = {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit small = before;
  small.rlim_cur = 1000;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string message;
  try {
    write_file(path, std::string(100000, 'x'));
  } catch (const RunError& error) {
    message = error.what();
  }
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, old_handler);
  CHECK(message.starts_with(path + ": cannot write: "));
  CHECK(read_file(path) == "old");
  CHECK(folder.names().size() == 1);
}

TEST_CASE("A write keeps the permissions of the old file and follows a symbolic link") {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("file");
  write_file(path, "old");
  const mode_t mask = ::umask(0);
  ::umask(mask);
  CHECK(mode_of(path) == (0666 & ~mask));
  REQUIRE(::chmod(path.c_str(), 0640) == 0);
  const std::string link = folder.path("link");
  fs::create_symlink("file", link);
  write_file(link, "new");
  CHECK(fs::is_symlink(link));
  CHECK(read_file(path) == "new");
  CHECK(mode_of(path) == 0640);
}

TEST_CASE("A write through links to a file that is not there yet makes it, and keeps the links") {
  const testing::TemporaryFolder folder;
  fs::create_symlink("inner", folder.path("outer"));
  fs::create_symlink(folder.path("file"), folder.path("inner"));
  write_file(folder.path("outer"), "new");
  CHECK(fs::is_symlink(folder.path("outer")));
  CHECK(fs::is_symlink(folder.path("inner")));
  CHECK(!fs::is_symlink(folder.path("file")));
  CHECK(read_file(folder.path("file")) == "new");
  CHECK(folder.names().size() == 3);

  fs::create_symlink("none/file", folder.path("nowhere"));
  fs::create_symlink("circle", folder.path("circle"));
  for (const char* name : {"nowhere", "circle"}) {
    check_refused(folder.path(name), [&] { write_file(folder.path(name), "x"); });
    CHECK(fs::is_symlink(folder.path(name)));
  }
  CHECK(folder.names().size() == 5);
}

TEST_CASE("A name as long as the system takes can be written, a longer one is refused") {
  const testing::TemporaryFolder folder;
  for (const std::size_t length : {240, 241, 248, 249, 255}) {
    const std::string path = folder.path(std::string(length, 'n'));
    for (const char* content : {"first", "second"}) {
      write_file(path, content);
      CHECK(read_file(path) == content);
    }
    REQUIRE(fs::remove(path));
    CHECK(folder.names().size() == 0);
  }
  const std::string path = folder.path(std::string(256, 'n'));
  check_refused(path, [&] { write_file(path, "x"); });
}

TEST_CASE("A write into a folder that is missing names the folder") {
  const testing::TemporaryFolder folder;
  try {
    write_file(folder.path("none/file"), "x");
    FAIL("no error");
  } catch (const RunError& error) {
    CHECK(std::string(error.what()).find("no folder '" + folder.path("none") + "'") !=
          std::string::npos);
  }
}

// Standard input is this file, or closed, as long as it lives.
class StandardInput {
 public:
  explicit StandardInput(int file) : before_(::dup(STDIN_FILENO)) {
    if (file >= 0) {
      REQUIRE(::dup2(file, STDIN_FILENO) == STDIN_FILENO);
      ::close(file);
    } else {
      ::close(STDIN_FILENO);
    }
  }
  ~StandardInput() {
    ::dup2(before_, STDIN_FILENO);
    ::close(before_);
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;

 private:
  int before_;
};

TEST_CASE("Standard input is read to its end, and refused where it cannot be") {
  const testing::TemporaryFolder folder;
  std::string content(300000, 'x');
  content += '\0';
  write_file(folder.path("file"), content);
  {
    const StandardInput input(::open(folder.path("file").c_str(), O_RDONLY));
    CHECK(read_standard_input() == content);
    CHECK(read_standard_input().empty());
  }
  {
    const StandardInput input(::open("/dev/zero", O_RDONLY));
    check_refused("standard input", [] { (void)read_standard_input(100000); });
  }
  {
    const StandardInput input(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY));
    check_refused("standard input", [] { (void)read_standard_input(); });
  }
  const StandardInput closed(-1);
  check_refused("standard input", [] { (void)read_standard_input(); });
}

TEST_CASE("Standard input that does not block is waited for") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  REQUIRE(::fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
  const StandardInput input(ends[0]);
  std::jthread writer([end = ends[1]] {
    for (const char* part : {"one ", "two"}) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (::write(end, part, std::strlen(part)) < 0) std::abort();
    }
    ::close(end);
  });
  CHECK(read_standard_input() == "one two");
}

}  // namespace
}  // namespace doppler
