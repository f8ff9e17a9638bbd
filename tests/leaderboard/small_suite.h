// A suite of two small tasks, one with luck, and rows of it.
#pragma once

#include <string>
#include <vector>

#include "leaderboard/protocol.h"
#include "leaderboard/ranking.h"
#include "leaderboard/submission.h"
#include "leaderboard/suite.h"

namespace doppler::testing {

// Tiers of 1 and 20 evaluations, seeds 0 and 1, three runs where there is luck.
inline const Suite& small_suite() {
  static const Suite suite = [] {
    Suite small{.name = "small",
                .summary = "for tests",
                .seeds = {0, 1},
                .n_runs = 3,
                .tiers = {{1, 20}, {20, 20}},
                .training = {.max_evaluations = 1000, .max_seconds = 60},
                .tasks = {{.name = "exact", .task = "chainmm(n=1000,shards=2)@p100x4"},
                          {.name = "lucky",
                           .task = "ffnn(shards=2)@p100x4",
                           .settings = {.choice = Choice::random, .noise = 0.1}}}};
    fill_in(small);
    return small;
  }();
  return suite;
}

// A row of the suite as `leaderboard run` makes it, in this process.
inline Submission make_row(const Suite& suite, const std::string& agent, std::int64_t tier) {
  Submission row{.suite = suite.name,
                 .revision = suite.revision,
                 .tier = tier,
                 .agent = agent,
                 .kind = kind_of_agent(agent),
                 .code_version = "0.1.0"};
  const auto keys = plan_decisions(suite, suite.name, agent, tier, row.kind);
  std::vector<DecisionRecord> records;
  for (const DecisionKey& key : keys) records.push_back({.key = key, .run = decide(suite, key)});
  row.tasks = assemble(suite, keys, records);
  return row;
}

}  // namespace doppler::testing
