#include "leaderboard/isolation.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>
#include <nlohmann/json.hpp>

#include "graphs/error.h"

namespace doppler {
namespace {

using Clock = std::chrono::steady_clock;

// Lines of the pipe: an agent begins to decide, has decided, or a record.
constexpr std::string_view kDeciding = "deciding\n";
constexpr std::string_view kDecided = "decided\n";
constexpr int kBetweenLooks = 20;    // milliseconds
constexpr int kLooksForEnd = 250;    // for a process that closed its pipe
constexpr double kGraceSeconds = 1;  // for an agent that looks at the clock now and then
constexpr double kBytesOfGibibyte = 1U << 30U;

std::string text_of(double value) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.3g", value);
  return buffer.data();
}

void write_all(int output, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(output, text.data(), text.size());
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EINTR) return;  // nobody reads any longer
  }
}

// Bytes that a process holds in memory; 0 if it is gone.
double resident_bytes(pid_t id) {
  std::ifstream file("/proc/" + std::to_string(id) + "/statm");
  double total = 0;
  double resident = 0;
  if (!(file >> total >> resident)) return 0;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

std::string end_text(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return "the agent's process crashed: signal " + std::to_string(signal) + " (" +
           strsignal(signal) + ")";
  }
  return "the agent's process ended without an answer, with exit code " +
         std::to_string(WEXITSTATUS(status));
}

// Whether the process has ended; it is not reaped.
bool has_ended(pid_t id) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(id), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

// Waits for the end of the process, for a while only, ends what it left behind, and returns its
// status. Its group cannot be another's before it is reaped.
int end_of(const DecisionProcess& process) {
  for (int look = 0; look < kLooksForEnd && !has_ended(process.id); ++look)
    usleep(kBetweenLooks * 1000);
  kill(-process.id, SIGKILL);
  int status = 0;
  while (waitpid(process.id, &status, 0) < 0 && errno == EINTR) {
  }
  close(process.output);
  return status;
}

// The state of one process that is followed.
class Follower {
 public:
  Follower(const DecisionProcess& process, const Suite& suite, std::span<const DecisionKey> keys,
           const IsolationLimits& limits, const std::function<void(DecisionRecord)>& on_record)
      : process_(process), suite_(suite), keys_(keys), limits_(limits), on_record_(on_record) {}

  void run() {
    std::string failure;
    while (failure.empty() && read_some()) failure = broken_limit();
    if (!failure.empty()) kill(-process_.id, SIGKILL);
    const int status = end_of(process_);
    if (next_ == keys_.size() || failed_) return;
    on_record_(
        {.key = keys_[next_], .run = {}, .failure = failure.empty() ? end_text(status) : failure});
  }

 private:
  // Waits a moment for output; false at its end.
  bool read_some() {
    pollfd wait{process_.output, POLLIN, 0};
    const int ready = poll(&wait, 1, kBetweenLooks);
    if (ready <= 0) return !has_ended(process_.id);
    std::array<char, 65536> buffer;
    const ssize_t size = read(process_.output, buffer.data(), buffer.size());
    if (size < 0) return errno == EINTR || errno == EAGAIN;
    if (size == 0) return false;
    pending_.append(buffer.data(), static_cast<std::size_t>(size));
    for (std::size_t end = 0; (end = pending_.find('\n')) != std::string::npos;) {
      line(pending_.substr(0, end + 1));
      pending_.erase(0, end + 1);
    }
    return true;
  }

  void line(const std::string& text) {
    if (text == kDeciding) {
      other_ += since(phase_);
      phase_ = Clock::now();
      deciding_ = true;
    } else if (text == kDecided) {
      phase_ = Clock::now();
      deciding_ = false;
    } else if (next_ < keys_.size() && !failed_) {
      DecisionRecord record;
      try {
        record = parse_decision_record(text, "the agent's process", suite_);
      } catch (const Error& error) {
        record.failure = error.what();
      }
      record.key = keys_[next_++];
      failed_ = !record.failure.empty();
      if (deciding_) phase_ = Clock::now();
      deciding_ = false;
      on_record_(std::move(record));
    }
  }

  // Which limit the process breaks now; empty: none.
  [[nodiscard]] std::string broken_limit() const {
    if (next_ == keys_.size()) return {};
    const double allowed = suite_.tier(keys_[next_].tier).seconds;
    if (deciding_ && since(phase_) > allowed + kGraceSeconds) {
      return "the agent did not decide within the " + text_of(allowed) + " s of the tier";
    }
    if (!deciding_ && other_ + since(phase_) > limits_.other_seconds) {
      return "building the task and executing the assignment took over " +
             text_of(limits_.other_seconds) + " s";
    }
    if (resident_bytes(process_.id) > limits_.memory) return memory_text();
    return {};
  }

  [[nodiscard]] std::string memory_text() const {
    return "the agent's process took more than " + text_of(limits_.memory / kBytesOfGibibyte) +
           " GiB of memory";
  }

  static double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  const DecisionProcess& process_;
  const Suite& suite_;
  std::span<const DecisionKey> keys_;
  const IsolationLimits& limits_;
  const std::function<void(DecisionRecord)>& on_record_;
  std::string pending_;
  std::size_t next_ = 0;  // key that the next record is of
  bool failed_ = false;   // a record with a failure has come: the process ends there
  bool deciding_ = false;
  double other_ = 0;  // seconds outside of decisions
  Clock::time_point phase_ = Clock::now();
};

// The shadow memory of a sanitizer is more than any limit.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsMemory = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kLimitsMemory = false;
#else
constexpr bool kLimitsMemory = true;
#endif
#else
constexpr bool kLimitsMemory = true;
#endif

void set_memory_limit(double bytes) {
  const rlimit limit{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
  if (kLimitsMemory) setrlimit(RLIMIT_DATA, &limit);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
}

// A file of no name that holds the text, at its beginning.
int input_of(const std::string& text) {
  std::FILE* file = std::tmpfile();
  if (file == nullptr) return -1;
  const int input = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
  std::fclose(file);
  if (input < 0) return -1;
  write_all(input, text);
  lseek(input, 0, SEEK_SET);
  return input;
}

}  // namespace

DecisionProcess start_decisions(const std::vector<std::string>& command,
                                std::span<const DecisionKey> keys, const IsolationLimits& limits) {
  std::string lines;
  for (const DecisionKey& key : keys) lines += to_json(key);
  const auto fail = [](const char* what) {
    return RunError(std::string("cannot start a process for an agent: ") + what + ": " +
                    std::strerror(errno));
  };
  const int input = input_of(lines);
  if (input < 0) throw fail("temporary file");
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    close(input);
    throw fail("pipe");
  }
  // Everything that allocates comes before the fork: other threads may hold the allocator's lock.
  std::vector<std::string> words = command;
  words.emplace_back("--result-fd");
  words.push_back(std::to_string(ends[1]));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    set_memory_limit(limits.memory);
    dup2(input, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    fcntl(ends[1], F_SETFD, 0);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  if (child > 0) setpgid(child, child);  // whichever of the two comes first
  const int code = errno;
  close(input);
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    errno = code;
    throw fail("fork");
  }
  return {.id = child, .output = ends[0]};
}

void follow_decisions(const DecisionProcess& process, const Suite& suite,
                      std::span<const DecisionKey> keys, const IsolationLimits& limits,
                      const std::function<void(DecisionRecord)>& on_record) {
  Follower(process, suite, keys, limits, on_record).run();
}

std::string answer_of(const DecisionProcess& process, double seconds) {
  const auto begin = Clock::now();
  std::string answer;
  bool in_time = true;
  for (bool goes_on = true; goes_on;) {
    pollfd wait{process.output, POLLIN, 0};
    if (poll(&wait, 1, kBetweenLooks) <= 0) {
      goes_on = !has_ended(process.id);
    } else {
      std::array<char, 4096> buffer;
      const ssize_t size = read(process.output, buffer.data(), buffer.size());
      if (size > 0) answer.append(buffer.data(), static_cast<std::size_t>(size));
      goes_on = size > 0 || (size < 0 && (errno == EINTR || errno == EAGAIN));
    }
    in_time = std::chrono::duration<double>(Clock::now() - begin).count() <= seconds;
    goes_on = goes_on && in_time;
  }
  if (!in_time) kill(-process.id, SIGKILL);
  const int status = end_of(process);
  if (!in_time) throw RunError("the agent's process gave no answer in " + text_of(seconds) + " s");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw RunError(end_text(status));
  return answer;
}

// What an exception says, without the places in code that Python's come with.
static std::string reason_of(const std::exception& error) {
  std::string reason = error.what();
  reason = reason.substr(0, reason.find("\n\nAt:\n"));
  return reason.empty() ? "the agent failed without a message" : reason;
}

void serve_decisions(std::span<const DecisionKey> keys, int output) {
  for (const DecisionKey& key : keys) {
    DecisionRecord record{.key = key};
    Suite suite;
    try {
      suite = find_suite(key.suite);
      record.run = decide(suite, key, [&](DecisionPhase phase) {
        write_all(output, phase == DecisionPhase::begins ? kDeciding : kDecided);
      });
    } catch (const std::bad_alloc&) {
      record.failure = "the agent's process ran out of the memory that it may take";
    } catch (const std::exception& error) {
      record.failure = reason_of(error);
    } catch (...) {
      record.failure = "the agent threw something that is no exception";
    }
    std::string text;
    try {
      text = to_json(record, suite);
    } catch (const std::exception& error) {
      return;  // without a suite there is no record; the other side tells that none came
    }
    write_all(output, text);
    if (!record.failure.empty()) return;
  }
}

void describe_agents(const std::vector<std::string>& names, int output) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const std::string& name : names) {
    list.push_back({{"name", name}, {"kind", kind_of_agent(name)}});
  }
  write_all(output, nlohmann::ordered_json{{"agents", std::move(list)}}.dump() + "\n");
}

void describe_failure(const std::string& reason, int output) {
  using Json = nlohmann::ordered_json;
  write_all(output,
            Json{{"failure", reason}}.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void limit_own_memory(double bytes) { set_memory_limit(bytes); }

}  // namespace doppler
