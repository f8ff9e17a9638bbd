// doppler-gym leaderboard submit and verify: rows that came from anywhere.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/leaderboard.h"
#include "cli/json_text.h"
#include "cli/leaderboard_files.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/units.h"
#include "graphs/error.h"
#include "graphs/file.h"
#include "leaderboard/protocol.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostRefused = 20;  // files whose faults are told

constexpr HelpText kSubmitHelp = {
    .summary = "Add assignments that were made anywhere, by any tool, as a row",
    .details = R"(FILE is a row, or a draft of one: the same without what follows from the
assignments (hashes, makespans, curve), which is filled in. The row is verified first; one that does
not hold is refused with every reason, and the exit code is 1.)",
    .examples = R"(doppler-gym leaderboard submit mine.json --rows rows)"};

constexpr HelpText kVerifyHelp = {
    .summary = "Check rows, and execute their assignments again",
    .details = R"(Simulated makespans must come out to 1e-9. Of a real engine the spread of row and
of this machine is shown; --no-real leaves that out. --all takes every JSON file of the folder, also
rows of single runs and their tables. Exit code 1 if a file does not hold.)",
    .examples = R"(doppler-gym leaderboard verify --all
doppler-gym leaderboard verify mine.json other.json --json)"};

// --- submit ---

struct SubmitOptions {
  std::string file;
  std::string suite;
  std::string rows = kLeaderboardRows;
  bool json = false;
};

// What follows from the assignments of a draft. One that is illegal is left as it is: the
// verification tells it with its place.
void fill_in(Submission& row, const Suite& suite) {
  if (row.revision == 0) row.revision = suite.revision;
  if (row.code_version.empty()) row.code_version = DOPPLER_VERSION;
  for (SubmissionTask& task : row.tasks) {
    const auto found = std::find_if(suite.tasks.begin(), suite.tasks.end(),
                                    [&](const SuiteTask& item) { return item.name == task.name; });
    if (found == suite.tasks.end()) continue;  // told by the verification
    if (task.hash == 0) task.hash = found->hash;
    for (SubmissionRun& run : task.runs) {
      if (run.makespans.empty()) {
        if (!suite.is_simulated()) {
          throw UsageError(
              "a row of a real engine needs its makespans, and critical-path's from "
              "the same machine; see doppler-gym leaderboard run");
        }
        try {
          run.makespans = measure(suite, *found, run.assignment);
        } catch (const InvalidError&) {
          continue;
        }
      }
      if (!run.curve.empty()) continue;
      double sum = 0;
      for (const double makespan : run.makespans) sum += makespan;
      run.curve = {{run.evaluations, run.seconds, sum / static_cast<double>(run.makespans.size())}};
    }
  }
}

std::string fault_text(const std::string& path, const std::vector<std::string>& faults) {
  std::string text = path + ": the row does not hold";
  constexpr std::size_t kMostShown = 8;
  for (std::size_t i = 0; i < std::min(faults.size(), kMostShown); ++i) text += "\n  " + faults[i];
  if (faults.size() > kMostShown) {
    text += "\n  and " + std::to_string(faults.size() - kMostShown) + " more";
  }
  return text;
}

void submit(const SubmitOptions& options) {
  Verifier verifier(options.suite.empty() ? std::vector<Suite>{} : suites_of(options.suite));
  Submission row = parse_submission(read_file(options.file), options.file, Completeness::draft);
  const Suite& suite = verifier.suite_of(row.suite);
  fill_in(row, suite);
  const Verification verification = verifier.verify(row);
  if (!verification.holds()) throw RunError(fault_text(options.file, verification.faults));
  const std::string path = options.rows + "/" + row.file_name();
  std::error_code code;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), code);
  if (code) throw RunError(path + ": cannot make the folder: " + code.message());
  if (std::filesystem::exists(path, code)) {
    throw UsageError(path +
                     " is there; remove it to have another row of this agent, its authors "
                     "and tier");
  }
  save(path, to_json(row));
  if (options.json) {
    print(json_text({{"file", path}, {"executions", verification.n_executions}}));
  } else {
    print(path + ": verified by " + std::to_string(verification.n_executions) + " executions\n");
  }
}

// --- verify ---

struct VerifyOptions {
  std::vector<std::string> files;
  std::string suite;
  std::string rows = kLeaderboardRows;
  bool all = false;
  bool no_real = false;
  bool json = false;
};

Json verification_json(const CheckedFile& file) {
  Json spreads = Json::array();
  for (const Spread& spread : file.verification.spreads) {
    spreads.push_back({{"task", spread.task},
                       {"seed", spread.seed},
                       {"row", {spread.row_least, spread.row_largest}},
                       {"here", {spread.here_least, spread.here_largest}}});
  }
  return {{"file", file.path},
          {"format", file.format},
          {"holds", file.verification.holds()},
          {"faults", file.verification.faults},
          {"executions", file.verification.n_executions},
          {"spreads", std::move(spreads)}};
}

std::string spread_text(const CheckedFile& file) {
  if (file.verification.spreads.empty()) return {};
  Table table({{"task"}, {"seed", Align::right}, {"row", Align::right}, {"here", Align::right}});
  for (const Spread& spread : file.verification.spreads) {
    const Unit unit = time_unit(std::max(spread.row_largest, spread.here_largest), false);
    table.add({spread.task, std::to_string(spread.seed),
               in_unit(spread.row_least, unit) + " .. " + with_unit(spread.row_largest, unit),
               in_unit(spread.here_least, unit) + " .. " + with_unit(spread.here_largest, unit)});
  }
  return file.path + "\n" + table.to_string();
}

void verify(const VerifyOptions& options) {
  std::vector<std::string> paths = options.files;
  if (options.all == !paths.empty()) {
    throw UsageError("say what to verify: files, or --all for every row below --rows");
  }
  if (options.all) paths = files_below(options.rows, ".json");
  if (paths.empty()) throw UsageError(options.rows + " holds no rows");
  FileChecker checker(options.suite.empty() ? std::vector<Suite>{} : suites_of(options.suite),
                      !options.no_real);
  Progress progress(paths.size());
  Json list = Json::array();
  std::string spreads;
  std::vector<std::string> refused;
  std::string reasons;
  std::int64_t n_executions = 0;
  for (const std::string& path : paths) {
    const CheckedFile file = checker.check(path);
    n_executions += file.verification.n_executions;
    if (options.json) list.push_back(verification_json(file));
    spreads += spread_text(file);
    if (!file.verification.holds()) {
      if (refused.size() < kMostRefused) {
        reasons += "\n" + fault_text(path, file.verification.faults);
      }
      refused.push_back(path);
    }
    progress.advance(path);
  }
  if (options.json) {
    print(json_text({{"files", paths.size()},
                     {"executions", n_executions},
                     {"refused", refused},
                     {"results", std::move(list)}}));
  } else {
    print(spreads + std::to_string(paths.size() - refused.size()) + " of " +
          std::to_string(paths.size()) + " files hold (" + std::to_string(n_executions) +
          " executions)\n");
  }
  if (!refused.empty()) {
    throw RunError(std::to_string(refused.size()) + " of " + std::to_string(paths.size()) +
                   " files do not hold:" + reasons +
                   (refused.size() > kMostRefused ? "\nand more; --json tells all" : ""));
  }
}

}  // namespace

void add_submit(Command& leaderboard) {
  Command command = leaderboard.add("submit", kSubmitHelp);
  auto options = std::make_shared<SubmitOptions>();
  command.option({"FILE", "FILE", "The row, or its draft"}, into(options->file), true);
  command.option({"--rows", "DIR", "The folder of the rows. Default leaderboard/results"},
                 into(options->rows));
  command.option({"--suite", "FILE", "The file of a suite that is not of this build"},
                 into(options->suite));
  command.flag("--json", "Print an object", options->json);
  command.run([options] { submit(*options); });
}

void add_verify(Command& leaderboard) {
  Command command = leaderboard.add("verify", kVerifyHelp);
  auto options = std::make_shared<VerifyOptions>();
  command.option({"FILES", "FILE...", "Rows"},
                 [options](const std::string&, const std::vector<std::string>& values) {
                   options->files = values;
                 });
  command.flag("--all", "Every row of the folder", options->all);
  command.option({"--rows", "DIR", "The folder of the rows. Default leaderboard/results"},
                 into(options->rows));
  command.option({"--suite", "FILE", "The file of a suite that is not of this build"},
                 into(options->suite));
  command.flag("--no-real", "Do not execute rows of real engines", options->no_real);
  command.flag("--json", "Print an object", options->json);
  command.run([options] { verify(*options); });
}

}  // namespace doppler::cli
