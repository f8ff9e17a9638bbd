#include "cli/leaderboard_files.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "cli/json_text.h"
#include "cli/progress.h"
#include "cli/results.h"
#include "graphs/error.h"
#include "graphs/file.h"
#include "graphs/lower_bound.h"
#include "graphs/strict_json.h"
#include "leaderboard/result_row.h"
#include "leaderboard/result_summary.h"

namespace doppler::cli {
namespace {

namespace fs = std::filesystem;

// What a table is checked for: the fields of `results table --json`.
bool is_table(const nlohmann::json& document) {
  return document.is_object() && document.contains("rows") && document.contains("summaries");
}

void check_table(const std::string& content, const std::string& path) {
  const std::string folder = (fs::path(path).parent_path() / "rows").string();
  const std::vector<ResultRow> rows = read_rows(folder);
  const std::vector<ResultSummary> summaries = summarise(rows);
  if (nlohmann::json::parse(content) ==
      nlohmann::json::parse(json_text(table_json(rows.size(), summaries)))) {
    return;
  }
  throw RunError("the table is not that of the rows in " + folder +
                 "; doppler-gym results table --json makes it again");
}

// Whether a file is a submission, or was to be one: neither a row of a single run nor a table.
bool is_for_leaderboard(const std::string& content) {
  const nlohmann::json document = nlohmann::json::parse(content, nullptr, false);
  if (!document.is_object()) return true;
  if (is_table(document)) return false;
  const auto format = document.find("format");
  return format == document.end() ||
         (*format != "doppler-result" && *format != "doppler-paper-table");
}

FailedSubmission parse_failed(const std::string& path) {
  const std::string content = read_file(path);
  const nlohmann::json document = parse_strict_json(content, path);
  const JsonElement root(document, path);
  root.expect_format("doppler-failed-row", 1);
  root.allow_fields(
      {"format", "version", "suite", "agent", "kind", "tier", "task", "seed", "reason"});
  return {.suite = root.field("suite").text(),
          .agent = root.field("agent").text(),
          .kind = root.field("kind").text(),
          .tier = root.field("tier").integer(1, std::numeric_limits<std::int64_t>::max()),
          .task = root.field("task").text(),
          .reason = root.field("reason").text()};
}

}  // namespace

std::vector<std::string> files_below(const std::string& folder, const std::string& extension) {
  std::vector<std::string> paths;
  std::error_code code;
  for (fs::recursive_directory_iterator i(folder, code), end; !code && i != end;
       i.increment(code)) {
    if (i->is_directory() && i->path().extension() == ".part") i.disable_recursion_pending();
    if (i->is_regular_file() && i->path().extension() == extension) {
      paths.push_back(i->path().string());
    }
  }
  if (code) throw RunError(folder + ": cannot read: " + code.message());
  std::sort(paths.begin(), paths.end());
  return paths;
}

CheckedFile FileChecker::check(const std::string& path) {
  CheckedFile file{.path = path};
  try {
    check_content(file);
  } catch (const Error& error) {
    file.verification.faults.emplace_back(error.what());
  }
  return file;
}

void FileChecker::check_content(CheckedFile& file) {
  const std::string content = read_file(file.path);
  const nlohmann::json document = parse_strict_json(content, file.path);
  if (is_table(document)) {
    file.format = "table";
    check_table(content, file.path);
    return;
  }
  const JsonElement root(document, file.path);
  file.format = root.field("format").text();
  if (file.format == "doppler-submission") {
    file.row = parse_submission(content, file.path);
    file.verification = verifier_.verify(*file.row);
  } else if (file.format == "doppler-paper-table") {
    file.verification.n_executions = 0;  // no row: made of rows beside it, and of trainings
  } else if (file.format == "doppler-result") {
    check_result(content, file.path);
    file.verification.n_executions = 1;
  } else {
    root.field("format").fail("expected a row: doppler-submission or doppler-result");
  }
}

void FileChecker::check_result(const std::string& content, const std::string& path) {
  const ResultRow row = parse_row(content, path);
  const std::string task = row.key.task_text();
  auto place = tasks_.find(task);
  if (place == tasks_.end()) place = tasks_.emplace(task, task_of(row.key)).first;
  check_row(row, place->second);
  if (row.evaluations > row.key.max_evaluations) {
    throw RunError("the row has " + std::to_string(row.evaluations) + " evaluations of " +
                   std::to_string(row.key.max_evaluations) + " allowed");
  }
  const double bound = place->second.lower_bound();
  if (place->second.options.noise == 0 && below_bound(row.curve.back().makespan, bound)) {
    throw RunError("the row's makespan is below the lower bound of its task");
  }
}

LeaderboardRows read_leaderboard(const std::string& folder, const std::vector<Suite>& more_suites) {
  LeaderboardRows result;
  FileChecker checker(more_suites, false);
  const std::vector<std::string> paths = files_below(folder, ".json");
  Progress progress(paths.size());
  const auto name_of = [&](const std::string& path) {
    return fs::path(path).lexically_relative(folder).generic_string();
  };
  for (const std::string& path : paths) {
    if (is_for_leaderboard(read_file(path))) {
      CheckedFile file = checker.check(path);
      if (file.verification.holds()) {
        result.verified.push_back({std::move(*file.row), name_of(path)});
      } else {
        result.refused.push_back({name_of(path), file.verification.faults});
      }
    }
    progress.advance(path);
  }
  for (const std::string& path : files_below(folder, ".failed")) {
    result.failed.push_back(parse_failed(path));
  }
  return result;
}

}  // namespace doppler::cli
