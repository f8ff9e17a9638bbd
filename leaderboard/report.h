// The leaderboard of a folder of rows: as JSON, Markdown, and one page that needs nothing else.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "leaderboard/ranking.h"

namespace doppler {

// A row that was refused, and why.
struct RefusedSubmission {
  std::string file = {};
  std::vector<std::string> faults = {};
};

// A row that could not be made: the agent failed.
struct FailedSubmission {
  std::string suite = {};
  std::string agent = {};
  std::string kind = {};
  std::int64_t tier = 0;
  std::string task = {};
  std::string reason = {};
};

struct LeaderboardRows {
  std::vector<VerifiedRow> verified = {};  // of any suites
  std::vector<RefusedSubmission> refused = {};
  std::vector<FailedSubmission> failed = {};
};

// The rankings of the suites that have rows, in the order of `suites`.
std::vector<SuiteRanking> rank_all(std::span<const Suite> suites, const LeaderboardRows& rows,
                                   const BootstrapOptions& options = {});

// What `rank --json` prints.
nlohmann::ordered_json leaderboard_json(std::span<const SuiteRanking> rankings,
                                        const LeaderboardRows& rows,
                                        const BootstrapOptions& options,
                                        const std::string& code_version);

// The same with what a report shows of each row beside its rank: hardware, parameters, the runs
// with their curves, and on tasks without noise and of at most kMostScheduledNodes nodes the
// schedule of its best decision (the simulator's, also for rows of a real engine).
inline constexpr std::int64_t kMostScheduledNodes = 5000;
nlohmann::ordered_json report_json(std::span<const SuiteRanking> rankings,
                                   const LeaderboardRows& rows, const BootstrapOptions& options,
                                   const std::string& code_version);

// A table a suite and tier, headroom, and what was refused or failed. Texts of rows are escaped.
std::string report_markdown(std::span<const SuiteRanking> rankings, const LeaderboardRows& rows);

// One self-contained page (leaderboard/page/) that holds the report. Texts of rows cannot end the
// script that holds them.
std::string report_page(const nlohmann::ordered_json& report);

}  // namespace doppler
