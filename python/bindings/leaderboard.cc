// The leaderboard: suites, decisions, rows, ranking. What has a file format crosses as its text.
#include <pybind11/stl.h>
#include <signal.h>
#include <sys/prctl.h>

#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cli/json_text.h"
#include "cli/leaderboard_files.h"
#include "cli/leaderboard_run.h"
#include "cli/ray.h"
#include "graphs/error.h"
#include "graphs/strict_json.h"
#include "leaderboard/isolation.h"
#include "leaderboard/protocol.h"
#include "leaderboard/report.h"
#include "leaderboard/score.h"
#include "python/bindings/convert.h"
#include "python/bindings/python_calls.h"
#include "python/bindings/rooms.h"

namespace doppler::python {
namespace {

// Of what is limited where the decision is made.
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::vector<DecisionKey> keys_of(const std::vector<std::string>& texts) {
  std::vector<DecisionKey> keys;
  for (const std::string& text : texts)
    keys.push_back(parse_decision_key(text, "a decision's key"));
  return keys;
}

std::vector<std::string> texts_of(std::span<const DecisionKey> keys) {
  std::vector<std::string> texts;
  for (const DecisionKey& key : keys) texts.push_back(to_json(key));
  return texts;
}

std::vector<std::string> plan(const std::string& suite_name, const std::string& agent,
                              std::int64_t tier, const std::string& kind) {
  const Suite suite = find_suite(suite_name);
  return texts_of(
      plan_decisions(suite, suite_name, agent, tier, kind.empty() ? kind_of_agent(agent) : kind));
}

std::string decide_one(const std::string& text) {
  const py::gil_scoped_release unlocked;
  const DecisionKey key = parse_decision_key(text, "a decision's key");
  const Suite suite = find_suite(key.suite);
  return to_json(DecisionRecord{.key = key, .run = decide(suite, key)}, suite);
}

// The row of records, with `head` over what new_submission() says.
std::string row_of(const std::string& suite_name, const std::string& agent, std::int64_t tier,
                   const std::vector<std::string>& texts, const py::dict& head) {
  const Suite suite = find_suite(suite_name);
  Submission row = new_submission(suite, agent, tier);
  row.code_version = DOPPLER_VERSION;
  for (const auto& [name, value] : head) {
    const auto field = name.cast<std::string>();
    if (field == "kind") row.kind = value.cast<std::string>();
    if (field == "link") row.link = value.cast<std::string>();
    if (field == "note") row.note = value.cast<std::string>();
    if (field == "command") row.command = value.cast<std::string>();
    if (field == "authors") row.authors = value.cast<std::vector<std::string>>();
    if (field == "training") row.training = cli::read_training(value.cast<std::string>(), suite);
  }
  std::vector<DecisionRecord> records;
  for (const std::string& text : texts) {
    records.push_back(parse_decision_record(text, "a record", suite));
  }
  row.tasks =
      assemble(suite, plan_decisions(suite, suite_name, row.agent, tier, row.kind), records);
  return to_json(row);
}

std::vector<std::string> verify_text(const std::string& text, const std::string& suite) {
  Verifier verifier(suite.empty() ? std::vector<Suite>{} : std::vector<Suite>{find_suite(suite)});
  const Submission row = parse_submission(text, "the row");
  const py::gil_scoped_release unlocked;
  return verifier.verify(row).faults;
}

std::string rank_rows(const std::string& rows_folder, const std::string& suite,
                      std::int64_t n_samples, bool whole) {
  const py::gil_scoped_release unlocked;
  const std::vector<Suite> chosen =
      suite.empty() ? suites() : std::vector<Suite>{find_suite(suite)};
  const LeaderboardRows rows = cli::read_leaderboard(rows_folder, chosen);
  const BootstrapOptions options{.n_samples = n_samples};
  const std::vector<SuiteRanking> rankings = rank_all(chosen, rows, options);
  return cli::compact_json_text(whole ? report_json(rankings, rows, options, DOPPLER_VERSION)
                                      : leaderboard_json(rankings, rows, options, DOPPLER_VERSION));
}

using Starter = std::function<DecisionProcess(std::span<const DecisionKey>)>;

// start(keys, memory) of Python, which returns (process, file), for threads that do not hold the
// interpreter.
Starter starter_of(const py::function& start, double memory) {
  const std::shared_ptr<py::function> kept(new py::function(start), [](py::function* function) {
    const py::gil_scoped_acquire locked;
    delete function;
  });
  return [kept, memory](std::span<const DecisionKey> keys) {
    const py::gil_scoped_acquire locked;
    try {
      const py::tuple process = (*kept)(texts_of(keys), memory);
      return DecisionProcess{process[0].cast<pid_t>(), process[1].cast<int>()};
    } catch (const py::error_already_set& error) {
      throw RunError(std::string("cannot start a process for an agent: ") + error.what());
    }
  };
}

Hardware hardware_from(const std::string& text) {
  const nlohmann::json document = parse_strict_json(text, "hardware");
  const std::string source = "hardware";
  return hardware_of(JsonElement(document, source));
}

// The records of keys, made in a process that Python forks.
std::vector<std::string> follow(const std::vector<std::string>& texts, double memory,
                                const py::function& start) {
  const std::vector<DecisionKey> keys = keys_of(texts);
  if (keys.empty()) return {};
  const Suite suite = find_suite(keys.front().suite);
  const Starter started = starter_of(start, memory);
  std::vector<std::string> records;
  const py::gil_scoped_release unlocked;
  follow_decisions(
      started(keys), suite, keys, {.memory = memory},
      [&](const DecisionRecord& record) { records.push_back(to_json(record, suite)); });
  return records;
}

// Keeps what the command does on a signal, which Ray would change.
class KeepSignals {
 public:
  KeepSignals() {
    for (std::size_t i = 0; i < kNumbers.size(); ++i) sigaction(kNumbers[i], nullptr, &kept_[i]);
  }
  ~KeepSignals() {
    for (std::size_t i = 0; i < kNumbers.size(); ++i) sigaction(kNumbers[i], &kept_[i], nullptr);
  }
  KeepSignals(const KeepSignals&) = delete;
  KeepSignals& operator=(const KeepSignals&) = delete;

 private:
  static constexpr std::array<int, 3> kNumbers = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kNumbers.size()> kept_{};
};

// How the command reaches Ray.
void connect(const std::string& address, cli::LeaderboardRun& run) {
  const KeepSignals keep;
  const py::gil_scoped_acquire locked;
  const py::tuple cluster = call_python("distributed", "connect_command", address, run.suite,
                                        run.agents, run.limits.memory);
  run.start = starter_of(cluster[0], run.limits.memory);
  if (run.jobs == 0) run.jobs = cluster[1].cast<int>();
  run.hardware = hardware_from(cluster[2].cast<std::string>());
  run.limits.other_seconds = kNoLimit;
}

// run() with processes that Python starts: start(keys, memory) returns (process, file).
py::tuple run_forked(const py::dict& options, const py::function& start) {
  cli::LeaderboardRun run;
  run.suite = options["suite"].cast<std::string>();
  run.agents = options["agents"].cast<std::vector<std::string>>();
  run.tiers = options["tiers"].cast<std::vector<std::int64_t>>();
  run.rows = options["rows"].cast<std::string>();
  run.training = options["training"].cast<std::string>();
  run.kind = options["kind"].cast<std::string>();
  run.authors = options["authors"].cast<std::vector<std::string>>();
  run.link = options["link"].cast<std::string>();
  run.note = options["note"].cast<std::string>();
  run.command = options["command"].cast<std::string>();
  run.resume = options["resume"].cast<bool>();
  run.jobs = options["jobs"].cast<int>();
  run.limits.memory = options["memory"].cast<double>();
  if (options.contains("hardware")) {
    run.hardware = hardware_from(options["hardware"].cast<std::string>());
    run.limits.other_seconds = kNoLimit;
  }
  run.start = starter_of(start, run.limits.memory);
  cli::LeaderboardRunDone done;
  {
    const py::gil_scoped_release unlocked;
    done = cli::run_leaderboard(run);
  }
  py::list failed;
  for (const cli::FailedRow& row : done.failed) {
    failed.append(py::make_tuple(row.file, row.agent, row.tier, row.task, row.seed, row.reason));
  }
  return py::make_tuple(done.made, done.found, failed);
}

py::tuple tuple_of(const Interval& interval) {
  return py::make_tuple(interval.value, interval.low, interval.high);
}

}  // namespace

void bind_leaderboard(py::module_& module) {
  cli::set_ray_connector(&connect);
  module.def("leaderboard_suites", [] {
    std::vector<std::string> texts;
    for (const Suite& suite : suites()) texts.push_back(to_json(suite));
    return texts;
  });
  module.def(
      "leaderboard_suite", [](const std::string& name) { return to_json(find_suite(name)); },
      py::arg("name"));
  module.def("leaderboard_plan", &plan, py::arg("suite"), py::arg("agent"), py::arg("tier"),
             py::arg("kind"));
  module.def("leaderboard_decide", &decide_one, py::arg("key"));
  module.def("leaderboard_row", &row_of, py::arg("suite"), py::arg("agent"), py::arg("tier"),
             py::arg("records"), py::arg("head"));
  module.def(
      "leaderboard_file_name",
      [](const std::string& row) { return parse_submission(row, "the row").file_name(); },
      py::arg("row"));
  module.def("leaderboard_verify", &verify_text, py::arg("row"), py::arg("suite"));
  module.def("leaderboard_rank", &rank_rows, py::arg("rows"), py::arg("suite"), py::arg("samples"),
             py::arg("whole"));
  module.def("leaderboard_run", &run_forked, py::arg("options"), py::arg("start"));
  module.def("leaderboard_follow", &follow, py::arg("keys"), py::arg("memory"), py::arg("start"));
  module.def("leaderboard_hardware", [] { return hardware_json(this_hardware()).dump(); });
  module.def(
      "leaderboard_serve",
      [](const std::vector<std::string>& keys, int output, double memory) {
        limit_own_memory(memory);
        prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody waits for what an orphan decides
        const std::vector<DecisionKey> parsed = keys_of(keys);
        const py::gil_scoped_release unlocked;
        serve_decisions(parsed, output);
      },
      py::arg("keys"), py::arg("output"), py::arg("memory"));
  module.def(
      "interquartile_mean",
      [](const ScoreTable& scores, std::int64_t samples, double confidence, std::uint64_t seed) {
        return tuple_of(interquartile_mean_interval(
            scores, {.n_samples = samples, .confidence = confidence, .seed = seed}));
      },
      py::arg("scores"), py::arg("samples"), py::arg("confidence"), py::arg("seed"));
  module.def("probability_of_improvement", &probability_of_improvement, py::arg("x"), py::arg("y"));
}

}  // namespace doppler::python
