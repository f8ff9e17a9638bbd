// What the commands below `doppler-gym leaderboard` share.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "leaderboard/suite.h"

namespace doppler::cli {

// Where rows lie unless --rows says otherwise.
inline constexpr const char* kLeaderboardRows = "leaderboard/results";

// The suite of this name or file; all that are registered for an empty one.
//
// Errors: UsageError if there is none.
std::vector<Suite> suites_of(const std::string& wanted);

void add_submit(Command& leaderboard);
void add_verify(Command& leaderboard);
void add_rank(Command& leaderboard);
void add_report(Command& leaderboard);

}  // namespace doppler::cli
