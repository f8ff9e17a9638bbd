#include "tests/cli/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tests/support/catch.h"

namespace doppler::testing {
namespace {

// Both ends close at exec unless they are duplicated.
std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  return ends;
}

// Whether the process blocks SIGINT and not all signals, which it does once it handles Ctrl-C (a
// sanitizer's start blocks all for a moment); true if it is gone.
bool blocks_interrupt(pid_t id) {
  std::ifstream status("/proc/" + std::to_string(id) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("State:") && line.find('Z') != std::string::npos) return true;
    if (line.starts_with("SigBlk:")) {
      const auto mask = std::stoull(line.substr(7), nullptr, 16);
      return ((mask >> (SIGINT - 1)) & 1U) != 0 && ((mask >> (SIGUSR1 - 1)) & 1U) == 0;
    }
  }
  return true;
}

}  // namespace

Process::Process(const std::vector<std::string>& arguments, const std::string& input,
                 const char* command) {
  const auto in = make_pipe();
  const auto out = make_pipe();
  const auto err = make_pipe();
  std::vector<std::string> words = {command};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  id_ = fork();
  if (id_ < 0) throw std::runtime_error("no process");
  if (id_ == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    signal(SIGINT, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    execv(pointers.front(), pointers.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  close(err[1]);
  input_ = in[1];
  out_ = out[0];
  err_ = err[0];
  // Inputs of these tests fit into the pipe.
  if (!input.empty() && write(input_, input.data(), input.size()) < 0) {
    throw std::runtime_error("standard input cannot be written");
  }
  close(input_);
}

Process::~Process() {
  if (id_ > 0) {
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  if (out_ >= 0) close(out_);
  if (err_ >= 0) close(err_);
}

void Process::await_ready() const {
  while (!blocks_interrupt(id_)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void Process::send(int signal) const { kill(id_, signal); }

void Process::close_output() {
  close(out_);
  out_ = -1;
}

Answer Process::wait() {
  Answer answer;
  std::array<pollfd, 2> files = {pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}};
  const std::array<std::string*, 2> texts = {&answer.out, &answer.err};
  std::array<char, 65536> buffer{};
  while (files[0].fd >= 0 || files[1].fd >= 0) {
    if (poll(files.data(), files.size(), -1) < 0) continue;
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (files[i].fd < 0 || files[i].revents == 0) continue;
      const ssize_t n_read = read(files[i].fd, buffer.data(), buffer.size());
      if (n_read > 0) {
        texts[i]->append(buffer.data(), static_cast<std::size_t>(n_read));
      } else {
        files[i].fd = -1;
      }
    }
  }
  int status = 0;
  waitpid(id_, &status, 0);
  id_ = -1;
  answer.signalled = WIFSIGNALED(status);
  answer.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return answer;
}

Answer run(const std::vector<std::string>& arguments, const std::string& input) {
  return Process(arguments, input).wait();
}

Answer run_of_tests(const std::vector<std::string>& arguments) {
  return Process(arguments, "", DOPPLER_COMMAND_OF_TESTS).wait();
}

nlohmann::json run_json(const std::vector<std::string>& arguments) {
  const Answer answer = run(arguments);
  INFO(answer.err);
  REQUIRE(answer.exit_code == 0);
  REQUIRE(answer.err.empty());
  return nlohmann::json::parse(answer.out);
}

void check_refused(const std::vector<std::string>& arguments, int exit_code,
                   const std::vector<std::string>& words) {
  const Answer answer = run(arguments);
  std::ostringstream line;
  for (const std::string& argument : arguments) line << " " << argument.substr(0, 100);
  INFO("doppler-gym" << line.str() << "\n" << answer.err);
  CHECK(answer.exit_code == exit_code);
  CHECK(answer.out.empty());
  CHECK(answer.err.starts_with("doppler-gym: "));
  CHECK(answer.err.ends_with("\n"));
  CHECK(answer.err.size() < 2000);
  CHECK(answer.err.find("doppler-gym: ", 1) == std::string::npos);
  CHECK(answer.err.find("internal error") == std::string::npos);
  for (const std::string& word : words) {
    INFO("looking for: " << word);
    CHECK(answer.err.find(word) != std::string::npos);
  }
}

}  // namespace doppler::testing
