#include "cli/results.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <limits>
#include <mutex>
#include <set>

#include "agents/agent.h"
#include "cli/decision.h"
#include "cli/output.h"
#include "cli/parallel.h"
#include "cli/problem.h"
#include "cli/progress.h"
#include "cli/settings.h"
#include "graphs/error.h"
#include "graphs/file.h"

namespace doppler::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

void make_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0777) == 0) return;
  const int code = errno;
  std::error_code ignored;
  if (code == EEXIST && fs::is_directory(folder, ignored)) return;
  throw RunError(folder + ": cannot make the folder: " + std::strerror(code));
}

// Whether the row is in its file.
bool is_done(const PlannedRow& row, const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return false;
  const ResultRow found = parse_row(read_file(path), path);
  const std::uint64_t hash = with_luck_of(*row.task, row.key.seed).hash();
  if (found.key == row.key && found.task_hash == hash) return true;
  throw UsageError(path + " is a row of another run, or of another version of task '" +
                   row.key.task + "'; move it away to have this one made");
}

}  // namespace

std::vector<PlannedRow> plan_rows(const ResultGrid& grid, const std::vector<Task>& tasks) {
  std::vector<PlannedRow> rows;
  std::set<std::string> names;
  StoredSettings settings;
  put_settings(grid.settings, settings);
  for (const Task& task : tasks) {
    for (const std::string& spelling : grid.agents) {
      named_agent(spelling);  // a slip is told before any run
      const AgentEntry& entry = agents().at(NamedCall::parse(spelling).name);
      const bool is_heuristic = entry.family == "heuristic";
      const bool once = entry.deterministic && !task.options.has_luck();
      for (std::int64_t budget : grid.evaluations) {
        for (std::int64_t s = 0; s < (once ? 1 : grid.n_seeds); ++s) {
          const ResultKey key{.task = task.name,
                              .agent = canonical_agent(spelling),
                              .seed = static_cast<std::uint64_t>(grid.first_seed + s),
                              .max_evaluations = is_heuristic ? 1 : budget,
                              .max_seconds = is_heuristic ? kNoLimit : grid.seconds,
                              .settings = settings};
          if (names.insert(key.file_name()).second) rows.push_back({&task, key});
        }
      }
    }
  }
  return rows;
}

Task task_of(const ResultKey& key) {
  return make_problem_of_task(key.task, settings_of(key.settings));
}

RowsDone run_rows(const std::vector<PlannedRow>& rows, const std::string& folder, int jobs) {
  make_folder(folder);
  RowsDone done;
  std::vector<std::size_t> missing;
  const auto path_of = [&](const PlannedRow& row) {
    return (fs::path(folder) / row.key.file_name()).string();
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!is_done(rows[i], path_of(rows[i]))) missing.push_back(i);
  }
  done.n_found = static_cast<std::int64_t>(rows.size() - missing.size());
  Progress progress(missing.size());
  std::mutex mutex;  // of `done`
  side_by_side(missing.size(), jobs, [&](std::size_t i) {
    const PlannedRow& row = rows[missing[i]];
    const std::string what = row.key.task_text() + "  " + row.key.agent;
    std::string failure;
    try {
      save(path_of(row), to_json(run_row(row.key, *row.task, DOPPLER_VERSION)));
    } catch (const std::exception& error) {
      failure = what + ", seed " + std::to_string(row.key.seed) + ": " + error.what();
    }
    progress.advance(what);
    const std::scoped_lock lock(mutex);
    if (failure.empty()) {
      ++done.n_made;
    } else {
      done.failures.push_back(std::move(failure));
    }
    return true;
  });
  return done;
}

std::vector<ResultRow> read_rows(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code code;
  for (fs::directory_iterator i(folder, code), end; !code && i != end; i.increment(code)) {
    if (i->path().extension() == ".json") paths.push_back(i->path().string());
  }
  if (code) throw RunError(folder + ": cannot read: " + code.message());
  if (paths.empty()) {
    throw UsageError(folder + " holds no rows; doppler-gym results run --rows " + folder +
                     " makes them");
  }
  std::sort(paths.begin(), paths.end());
  std::vector<ResultRow> rows;
  rows.reserve(paths.size());
  for (const std::string& path : paths) rows.push_back(parse_row(read_file(path), path));
  return rows;
}

}  // namespace doppler::cli
