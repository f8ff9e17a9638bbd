// The leaderboard of a folder of rows: as JSON, Markdown, and one page that needs nothing else.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "leaderboard/ranking.h"
#include "leaderboard/timelines.h"

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

// What a report holds at most, so that its page can be opened.
struct ReportLimits {
  TimelineLimits timelines = {};
  std::size_t max_curve_points = 64;  // of one decision; first and last are kept
};

// The same with what a report shows of each row beside its rank: hardware, parameters, the runs
// with their curves, and for each task the schedule of its best decision's first execution
// (Timelines). Where `limits` do not take all schedules, those of the best-ranked rows are kept.
nlohmann::ordered_json report_json(std::span<const SuiteRanking> rankings,
                                   const LeaderboardRows& rows, const BootstrapOptions& options,
                                   const std::string& code_version,
                                   const ReportLimits& limits = {});

// A table a suite and tier, headroom, and what was refused or failed. Texts of rows are escaped.
std::string report_markdown(std::span<const SuiteRanking> rankings, const LeaderboardRows& rows);

// One self-contained page (leaderboard/page/) that holds the report. Texts of rows cannot end the
// script that holds them.
std::string report_page(const nlohmann::ordered_json& report);

}  // namespace doppler
