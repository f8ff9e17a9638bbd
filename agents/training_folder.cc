#include "agents/training_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/hash.h"
#include "graphs/parse_error.h"
#include "graphs/strict_json.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kConfig = "config.json";
constexpr const char* kInitialPolicy = "initial_policy.json";
constexpr const char* kPolicy = "policy.json";
constexpr const char* kCheckpoint = "checkpoint.bin";
constexpr const char* kMetrics = "metrics.jsonl";
constexpr const char* kAssignment = "best_assignment.json";
constexpr const char* kAssignments = "best_assignments";

constexpr std::string_view kFormat = "doppler-checkpoint";
constexpr std::int64_t kVersion = 1;

[[noreturn]] void fail(const std::string& path, const std::string& what, int code) {
  throw RunError(path + ": cannot " + what + ": " + std::generic_category().message(code));
}

// The name without the end that write_file() gives it for as long as it writes: a dot and six
// letters. Such a file is left over if its process was killed.
std::string_view without_suffix(std::string_view name) {
  constexpr std::size_t kSuffix = 7;
  if (name.size() <= kSuffix || name[name.size() - kSuffix] != '.') return {};
  return name.substr(0, name.size() - kSuffix);
}

bool is_leftover(const std::string& name) {
  constexpr std::array kWritten = {kConfig, kInitialPolicy, kPolicy, kCheckpoint, kAssignment};
  return std::find(kWritten.begin(), kWritten.end(), without_suffix(name)) != kWritten.end();
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator i(folder, code), end; !code && i != end; i.increment(code)) {
    names.push_back(i->path().filename().string());
  }
  if (code) throw RunError(folder + ": cannot read: " + code.message());
  std::sort(names.begin(), names.end());
  return names;
}

bool has_config(const std::string& folder) {
  std::error_code ignored;
  return fs::exists(fs::path(folder) / kConfig, ignored);
}

void remove_leftovers(const std::string& folder) {
  std::error_code ignored;
  for (const std::string& name : names_in(folder)) {
    if (is_leftover(name)) fs::remove(fs::path(folder) / name, ignored);
  }
  const fs::path assignments = fs::path(folder) / kAssignments;
  if (!fs::is_directory(assignments, ignored)) return;
  for (const std::string& name : names_in(assignments.string())) {
    if (without_suffix(name).ends_with(".json")) fs::remove(assignments / name, ignored);
  }
}

// Refuses a folder in which a new run would mix with something. `policy` is the initial policy that
// a run which was killed before it began may have left.
void check_empty(const std::string& folder, const std::string* policy) {
  if (has_config(folder)) {
    throw UsageError(folder +
                     " holds a training run; continue it with --resume, or name another folder");
  }
  for (const std::string& name : names_in(folder)) {
    if (is_leftover(name)) continue;
    const std::string path = (fs::path(folder) / name).string();
    if (name == kInitialPolicy && (policy == nullptr || read_file(path) == *policy)) continue;
    throw UsageError(folder + " holds " + doppler::quoted(name) +
                     " and no training run; name an empty folder or a new one");
  }
}

FolderLock lock_folder(const std::string& path) {
  if (auto lock = FolderLock::try_take(path)) return *std::move(lock);
  throw UsageError(path + ": another process is training in this folder; wait for it or end it");
}

std::uint64_t checksum(const Checkpoint& checkpoint) {
  return Hasher()
      .add(checkpoint.identity)
      .add(checkpoint.seconds)
      .add(static_cast<std::uint64_t>(checkpoint.metrics_bytes))
      .add(static_cast<std::uint64_t>(checkpoint.over))
      .add(std::string_view(checkpoint.state))
      .digest();
}

std::uint64_t hash_of(const JsonElement& element) {
  const auto hash = parse_hash(element.text());
  if (!hash) element.fail("expected 16 hexadecimal digits");
  return *hash;
}

}  // namespace

TrainingFolder::TrainingFolder(std::string path, FolderLock lock)
    : path_(std::move(path)), lock_(std::move(lock)) {}

TrainingFolder::TrainingFolder(TrainingFolder&& other) noexcept
    : path_(std::move(other.path_)),
      config_(std::move(other.config_)),
      lock_(std::move(other.lock_)),
      metrics_(std::exchange(other.metrics_, -1)),
      n_metrics_(other.n_metrics_) {}

TrainingFolder& TrainingFolder::operator=(TrainingFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(config_, other.config_);
  std::swap(lock_, other.lock_);
  std::swap(metrics_, other.metrics_);
  std::swap(n_metrics_, other.n_metrics_);
  return *this;
}

TrainingFolder::~TrainingFolder() {
  if (metrics_ >= 0) ::close(metrics_);
}

TrainingFolder TrainingFolder::open(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored) || !has_config(path)) {
    throw UsageError(path + " holds no training run to continue");
  }
  TrainingFolder folder(path, lock_folder(path));
  const std::string file = (fs::path(path) / kConfig).string();
  folder.config_ = parse_run_config(read_file(file), file);
  if (folder.config_.initial_policy_hash != 0) {
    const std::string policy_file = (fs::path(path) / kInitialPolicy).string();
    std::string policy = read_file(policy_file);
    if (Hasher().add(policy).digest() != folder.config_.initial_policy_hash) {
      throw ParseError(policy_file + ": this is not the policy that the run began with");
    }
    folder.config_.options.initial_policy = std::move(policy);
  }
  remove_leftovers(path);
  return folder;
}

void TrainingFolder::check_can_create(const std::string& path) {
  std::error_code code;
  if (fs::is_directory(path, code)) {
    check_empty(path, nullptr);
    if (::access(path.c_str(), W_OK | X_OK) != 0) fail(path, "write in it", errno);
    return;
  }
  if (fs::exists(path, code)) throw UsageError(path + " is no folder; name a folder for the run");
  const std::string parent = fs::path(path).parent_path().string();
  if (!parent.empty() && !fs::is_directory(parent, code)) {
    throw RunError(path + ": there is no folder '" + parent + "'; make it first");
  }
}

TrainingFolder TrainingFolder::create(const std::string& path, const TrainingConfig& config) {
  check_can_create(path);
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) fail(path, "make the folder", errno);
  TrainingFolder folder(path, lock_folder(path));
  const std::string& policy = config.options.initial_policy;
  check_empty(path, &policy);
  remove_leftovers(path);
  // The configuration last: it makes the folder one of a run.
  if (!policy.empty()) write_file((fs::path(path) / kInitialPolicy).string(), policy);
  folder.set_config(config);
  return folder;
}

void TrainingFolder::set_config(const TrainingConfig& config) {
  write_file((fs::path(path_) / kConfig).string(), to_json(config));
  config_ = config;
}

std::optional<Checkpoint> TrainingFolder::read_checkpoint() const {
  const std::string file = (fs::path(path_) / kCheckpoint).string();
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return std::nullopt;
  std::string content = read_file(file);
  const std::size_t end = content.find('\n');
  if (end == std::string::npos) throw ParseError(file + ": damaged; it has no first line");
  const nlohmann::json document = parse_strict_json(content.substr(0, end), file);
  const JsonElement header(document, file);
  header.expect_format(kFormat, kVersion);
  header.allow_fields({"format", "version", "identity", "seconds", "metrics_bytes", "over",
                       "state_bytes", "checksum"});
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  Checkpoint checkpoint{.identity = hash_of(header.field("identity")),
                        .seconds = header.field("seconds").quantity(),
                        .metrics_bytes = header.field("metrics_bytes").integer(0, kLargest),
                        .over = header.field("over").boolean()};
  const std::int64_t n_state = header.field("state_bytes").integer(0, kLargest);
  content.erase(0, end + 1);
  if (content.size() != static_cast<std::size_t>(n_state)) {
    throw ParseError(file + ": damaged; its state has " + std::to_string(content.size()) +
                     " bytes of " + std::to_string(n_state));
  }
  checkpoint.state = std::move(content);
  if (checksum(checkpoint) != hash_of(header.field("checksum"))) {
    throw ParseError(file + ": damaged; its checksum is wrong");
  }
  if (checkpoint.identity != config_.identity()) {
    throw ParseError(file + ": belongs to another configuration; " + kConfig +
                     " was changed, or one of the two was copied from elsewhere");
  }
  return checkpoint;
}

void TrainingFolder::write_checkpoint(Checkpoint checkpoint) {
  checkpoint.identity = config_.identity();
  checkpoint.metrics_bytes = n_metrics_;
  if (metrics_ >= 0 && ::fsync(metrics_) != 0) fail(path_, "write the metrics", errno);
  const Json header = {{"format", kFormat},
                       {"version", kVersion},
                       {"identity", hash_text(checkpoint.identity)},
                       {"seconds", checkpoint.seconds},
                       {"metrics_bytes", checkpoint.metrics_bytes},
                       {"over", checkpoint.over},
                       {"state_bytes", checkpoint.state.size()},
                       {"checksum", hash_text(checksum(checkpoint))}};
  write_file((fs::path(path_) / kCheckpoint).string(), header.dump() + "\n" + checkpoint.state);
}

void TrainingFolder::cut_metrics(std::int64_t n_bytes) {
  const std::string file = (fs::path(path_) / kMetrics).string();
  if (metrics_ < 0) {
    metrics_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (metrics_ < 0) fail(file, "write", errno);
  }
  struct stat status = {};
  if (::fstat(metrics_, &status) != 0) fail(file, "write", errno);
  if (status.st_size < n_bytes) {
    throw ParseError(file + ": has " + std::to_string(status.st_size) + " bytes of the " +
                     std::to_string(n_bytes) +
                     " that the checkpoint knows of; bring it back, or "
                     "start another run with this folder as init_from");
  }
  char last = 0;
  if (n_bytes > 0 && (::pread(metrics_, &last, 1, n_bytes - 1) != 1 || last != '\n')) {
    throw ParseError(file + ": was changed; no line ends at byte " + std::to_string(n_bytes) +
                     ", where the checkpoint was made; bring it back, or start another run with "
                     "this folder as init_from");
  }
  if (::ftruncate(metrics_, n_bytes) != 0) fail(file, "write", errno);
  n_metrics_ = n_bytes;
}

void TrainingFolder::add_metrics(std::string_view line) {
  n_metrics_ += static_cast<std::int64_t>(line.size());
  while (!line.empty()) {
    const ssize_t n_written = ::write(metrics_, line.data(), line.size());
    if (n_written < 0 && errno == EINTR) continue;
    if (n_written < 0) fail((fs::path(path_) / kMetrics).string(), "write", errno);
    line.remove_prefix(static_cast<std::size_t>(n_written));
  }
}

bool TrainingFolder::has_policy() const {
  std::error_code ignored;
  return fs::exists(policy_path(), ignored);
}

void TrainingFolder::write_policy(std::string_view policy) const {
  write_file(policy_path(), policy);
}

void TrainingFolder::write_assignments(const std::vector<Assignment>& assignments) const {
  if (assignments.size() > 1) {
    const std::string folder = (fs::path(path_) / kAssignments).string();
    if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
      fail(folder, "make the folder", errno);
    }
  }
  for (std::size_t task = 0; task < assignments.size(); ++task) {
    write_file(assignment_path(task), doppler::to_json(assignments[task]));
  }
}

std::string TrainingFolder::policy_path() const { return (fs::path(path_) / kPolicy).string(); }

std::string TrainingFolder::assignment_path(std::size_t task) const {
  if (config_.trained_on.size() == 1) return (fs::path(path_) / kAssignment).string();
  const std::string name = std::to_string(task) + "-" + file_name_of(config_.trained_on[task].name);
  return (fs::path(path_) / kAssignments / (name + ".json")).string();
}

std::string read_policy(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return read_file(path);
  const std::string file = (fs::path(path) / kPolicy).string();
  if (!fs::exists(file, ignored)) {
    throw RunError(path + " holds no " + kPolicy +
                   "; name a policy file, or the folder of a "
                   "training run that has had a checkpoint");
  }
  return read_file(file);
}

}  // namespace doppler
