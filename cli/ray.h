// Decisions on a Ray cluster. Ray is reached by the Python package: it says here how, and the bare
// command starts it.
#pragma once

#include <functional>
#include <string>

#include "cli/leaderboard_run.h"

namespace doppler::cli {

// Connects to the cluster of an address and fills in where the run's decisions are made: start,
// jobs (0: as many as the cluster has cores), hardware and limits. Throws UsageError or RunError.
using RayConnector = std::function<void(const std::string& address, LeaderboardRun& run)>;

// Before any command runs; the last one counts.
void set_ray_connector(RayConnector connector);

// Connects, or where no connector was set becomes `python3` with the same command line, which does
// not return. Throws UsageError if there is no python3.
void connect_to_ray(const std::string& address, LeaderboardRun& run);

}  // namespace doppler::cli
