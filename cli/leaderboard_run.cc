#include "cli/leaderboard_run.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "agents/agent.h"
#include "agents/training_config.h"
#include "cli/decision.h"
#include "cli/launch.h"
#include "cli/output.h"
#include "cli/parallel.h"
#include "cli/progress.h"
#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/folder_lock.h"
#include "graphs/hash.h"
#include "graphs/parse_error.h"
#include "graphs/strict_json.h"
#include "leaderboard/row_parts.h"

namespace doppler::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double kDescribeSeconds = 60;
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

struct NamedKind {
  std::string name;
  std::string kind;
};

// What a plugin has, as a process of its own tells it.
std::vector<NamedKind> agents_of_plugin(const std::string& plugin, const IsolationLimits& limits) {
  std::vector<std::string> command = own_command();
  command.insert(command.end(), {"leaderboard", "work", "--describe", "--plugin", plugin});
  std::string answer;
  try {
    answer = answer_of(start_decisions(command, {}, limits), kDescribeSeconds);
  } catch (const RunError& error) {
    throw RunError("plugin " + plugin + ": " + error.what());
  }
  const nlohmann::json document = parse_strict_json(answer, "the plugin's process");
  const std::string source = plugin;
  const JsonElement root(document, source);
  if (const auto failure = root.find("failure")) throw RunError(failure->text());
  std::vector<NamedKind> result;
  for (const JsonElement& item : root.field("agents").elements()) {
    result.push_back({item.field("name").text(), item.field("kind").text()});
  }
  return result;
}

FolderLock lock_folder(const std::string& path) {
  if (auto lock = FolderLock::try_take(path)) return *std::move(lock);
  throw UsageError(path + ": another run is making this row; wait for it or end it");
}

// A row to be made, and what has been made of it.
struct Row {
  Submission header;
  std::string path;    // of the row
  std::string folder;  // of its records
  std::vector<DecisionKey> keys;
  std::vector<DecisionRecord> records;
  FolderLock lock;         // of the folder
  std::size_t n_open = 0;  // pieces that are not done
  bool failed = false;
};

// The decisions of one task, which one process makes one after another.
struct Piece {
  std::size_t row = 0;
  std::vector<DecisionKey> keys;
};

std::string record_path(const Row& row, const DecisionKey& key) {
  const std::string digest = hash_text(Hasher().add(key.task).digest()).substr(0, 8);
  return row.folder + "/" + file_name_of(key.task) + "--" + digest + "--" +
         std::to_string(key.seed) + ".json";
}

std::string failure_json(const Submission& header, const DecisionRecord& record) {
  return Json({{"format", "doppler-failed-row"},
               {"version", 1},
               {"suite", header.suite},
               {"agent", header.agent},
               {"kind", header.kind},
               {"tier", header.tier},
               {"task", record.key.task},
               {"seed", record.key.seed},
               {"reason", record.failure}})
             .dump(1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

class Runner {
 public:
  explicit Runner(const LeaderboardRun& run)
      : run_(run), suite_(find_suite(run.suite)), suite_path_(run.suite) {
    // The processes of agents may be elsewhere.
    std::error_code ignored;
    if (fs::is_regular_file(run.suite, ignored)) suite_path_ = fs::absolute(run.suite).string();
    if (!run.training.empty()) training_ = read_training(run.training, suite_);
    plan();
  }

  LeaderboardRunDone execute() {
    for (std::size_t r = 0; r < rows_.size(); ++r) prepare(r);
    std::size_t n_decisions = 0;
    for (const Piece& piece : pieces_) n_decisions += piece.keys.size();
    if (pieces_.empty()) return done_;
    start_ = run_.start;
    if (!start_) {
      start_ = [this, command = work_command()](std::span<const DecisionKey> keys) {
        return start_decisions(command, keys, run_.limits);
      };
    }
    Progress progress(n_decisions);
    // A real engine is not disturbed by the next decision.
    const int jobs = suite_.is_simulated() ? run_.jobs : 1;
    side_by_side(pieces_.size(), jobs, [&](std::size_t i) {
      try {
        work(pieces_[i], progress);
        return true;
      } catch (...) {
        const std::scoped_lock lock(mutex_);
        if (!fault_) fault_ = std::current_exception();
        return false;
      }
    });
    std::error_code ignored;
    for (const Row& row : rows_) {
      if (row.failed) fs::remove(row.folder, ignored);  // if nothing is in it
    }
    if (fault_) std::rethrow_exception(fault_);
    return done_;
  }

 private:
  void plan() {
    if (!run_.kind.empty()) check_kind(run_.kind);
    try {
      check_link(run_.link);
    } catch (const UsageError& error) {
      throw UsageError(std::string("--link: ") + error.what());
    }
    std::map<std::string, std::string> kinds;  // of the plugin's agents
    std::vector<std::string> wanted = run_.agents;
    if (!run_.plugin.empty()) {
      for (const NamedKind& agent : agents_of_plugin(run_.plugin, run_.limits)) {
        kinds[agent.name] = agent.kind;
        if (run_.agents.empty()) wanted.push_back(agent.name);
      }
    }
    if (wanted.empty()) throw UsageError("--agents is needed; see doppler-gym tasks --agents");
    std::vector<std::int64_t> tiers = run_.tiers;
    if (tiers.empty()) {
      for (const Tier& tier : suite_.tiers) tiers.push_back(tier.evaluations);
    }
    for (const std::int64_t tier : tiers) static_cast<void>(suite_.tier(tier));
    std::set<std::string> names;
    for (const std::string& spelling : wanted) {
      Submission header = header_of(spelling, kinds);
      const bool once = header.kind == "heuristic";
      for (const std::int64_t tier : tiers) {
        header.tier = once ? suite_.tiers.front().evaluations : tier;
        if (names.insert(header.file_name()).second) add(header);
      }
    }
  }

  Submission header_of(const std::string& spelling,
                       const std::map<std::string, std::string>& kinds) const {
    Submission header;
    const auto of_plugin = kinds.find(spelling);
    if (of_plugin != kinds.end()) {
      header = {.suite = suite_.name,
                .revision = suite_.revision,
                .agent = spelling,
                .kind = of_plugin->second,
                .hardware = this_hardware()};
    } else {
      named_agent(spelling);  // a slip is told before any run
      header = new_submission(suite_, spelling, suite_.tiers.front().evaluations);
    }
    if (!run_.kind.empty()) header.kind = run_.kind;
    header.authors = run_.authors;
    header.link = run_.link;
    header.note = run_.note;
    header.code_version = DOPPLER_VERSION;
    header.command = run_.command.empty() ? typed_command() : run_.command;
    header.training = training_;
    if (lacks_training(header)) {
      throw UsageError("agent '" + spelling +
                       "' starts from a policy; give --training: what it was trained on, as a file "
                       "or the folder of its training run");
    }
    check_texts(header);
    if (run_.hardware) header.hardware = *run_.hardware;
    return header;
  }

  void add(const Submission& header) {
    Row row{.header = header,
            .path = (fs::path(run_.rows) / header.file_name()).string(),
            .folder = {},
            .keys = plan_decisions(suite_, suite_path_, header.agent, header.tier, header.kind),
            .records = {},
            .lock = {}};
    row.folder = row.path.substr(0, row.path.size() - std::string(".json").size()) + ".part";
    std::error_code ignored;
    if (fs::exists(row.path, ignored)) {
      const Submission found = parse_submission(read_file(row.path), row.path);
      if (!run_.resume) {
        throw UsageError(row.path +
                         " is there; give --resume to keep it and make what is missing, "
                         "or remove it");
      }
      if (found.file_name() != header.file_name()) {
        throw UsageError(row.path + " holds another row (agent " + doppler::quoted(found.agent) +
                         ", tier " + std::to_string(found.tier) +
                         "); move it away to have this one made");
      }
      if (found.revision != suite_.revision) {
        throw UsageError(row.path + " is of revision " + std::to_string(found.revision) +
                         " of the suite; remove it to have it made again");
      }
      done_.found.push_back(header.file_name());
      return;
    }
    rows_.push_back(std::move(row));
  }

  // Reads the records that are there, and cuts the rest into pieces.
  void prepare(std::size_t r) {
    Row& row = rows_[r];
    std::error_code ignored;
    row.lock = lock_folder(row.folder);
    if (fs::exists(row.path, ignored)) {
      throw UsageError(row.path + " was made by another run meanwhile; give --resume to go on");
    }
    if (!run_.resume) {
      for (const auto& entry : fs::directory_iterator(row.folder, ignored)) {
        fs::remove_all(entry.path(), ignored);
      }
    }
    for (const DecisionKey& key : row.keys) {
      const std::string path = record_path(row, key);
      if (fs::exists(path, ignored)) {
        DecisionRecord record = parse_decision_record(read_file(path), path, suite_);
        if (record.failure.empty() && record.key == key) {
          row.records.push_back(std::move(record));
          continue;
        }
      }
      const bool is_new =
          pieces_.empty() || pieces_.back().row != r || pieces_.back().keys.back().task != key.task;
      if (is_new) {
        pieces_.push_back({.row = r, .keys = {}});
        ++row.n_open;
      }
      pieces_.back().keys.push_back(key);
    }
    if (row.n_open == 0) finish(row);
  }

  [[nodiscard]] std::vector<std::string> work_command() const {
    std::vector<std::string> command = own_command();
    command.insert(command.end(), {"leaderboard", "work"});
    if (!run_.plugin.empty()) command.insert(command.end(), {"--plugin", run_.plugin});
    return command;
  }

  void work(const Piece& piece, Progress& progress) {
    Row& row = rows_[piece.row];
    {
      const std::scoped_lock lock(mutex_);
      if (row.failed) return;  // nothing more can come of it
    }
    const std::string doing =
        row.header.agent + ", " + std::to_string(row.header.tier) + ", " + piece.keys.front().task;
    const DecisionProcess process = start_(piece.keys);
    follow_decisions(process, suite_, piece.keys, run_.limits, [&](DecisionRecord record) {
      const std::scoped_lock lock(mutex_);
      keep(row, std::move(record));
      progress.advance(doing);
    });
    const std::scoped_lock lock(mutex_);
    if (--row.n_open == 0 && !row.failed) finish(row);
  }

  void keep(Row& row, DecisionRecord record) {
    if (record.failure.empty()) {
      save(record_path(row, record.key), to_json(record, suite_));
      row.records.push_back(std::move(record));
      return;
    }
    if (row.failed) return;
    row.failed = true;
    std::string file = row.header.file_name();
    file.replace(file.size() - std::string(".json").size(), std::string::npos, ".failed");
    save((fs::path(run_.rows) / file).string(), failure_json(row.header, record));
    done_.failed.push_back({file, row.header.agent, row.header.tier, record.key.task,
                            record.key.seed, record.failure});
  }

  void finish(Row& row) {
    row.header.tasks = assemble(suite_, row.keys, row.records);
    save(row.path, to_json(row.header));
    std::error_code ignored;
    fs::remove_all(row.folder, ignored);
    fs::remove(fs::path(row.path).replace_extension(".failed"), ignored);
    done_.made.push_back(row.header.file_name());
    row.records.clear();
    row.header.tasks.clear();
  }

  const LeaderboardRun& run_;
  Suite suite_;
  std::string suite_path_;  // or its name
  Training training_;
  std::vector<Row> rows_;
  std::vector<Piece> pieces_;
  std::function<DecisionProcess(std::span<const DecisionKey>)> start_;
  std::mutex mutex_;  // of rows_ and done_
  LeaderboardRunDone done_;
  std::exception_ptr fault_;
};

}  // namespace

LeaderboardRunDone run_leaderboard(const LeaderboardRun& run) { return Runner(run).execute(); }

Training read_training(const std::string& path, const Suite& suite) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    const std::string file = path + "/config.json";
    const TrainingConfig config = parse_run_config(read_file(file), file);
    std::vector<std::string> names;
    for (const TrainedTask& task : config.trained_on) names.push_back(task.name);
    if (!config.graph.empty()) {
      throw UsageError(path +
                       ": the run was trained on a graph file, which has no name; write a "
                       "file with tasks, evaluations and seconds instead (docs/leaderboard.md)");
    }
    Training training = training_on(suite, names);
    training.evaluations = config.options.max_evaluations;
    return training;
  }
  const nlohmann::json document = parse_strict_json(read_file(path), path);
  const JsonElement root(document, path);
  root.allow_fields({"tasks", "evaluations", "seconds"});
  std::vector<std::string> names;
  for (const JsonElement& item : root.field("tasks").elements()) names.push_back(item.text());
  Training training = training_on(suite, names);
  training.evaluations = root.field("evaluations").integer(0, kLargest);
  training.seconds = root.field("seconds").quantity();
  return training;
}

}  // namespace doppler::cli
