// The subcommands, one file each (leaderboard has three). Adding one: a file here with its add
// function, the function's line below, and its call in run.cc.
#pragma once

#include "cli/command_line.h"

namespace doppler::cli {

void add_tasks(Command& program);        // what is registered
void add_graph(Command& program);        // show, generate, convert, check
void add_simulate(Command& program);     // one assignment
void add_assign(Command& program);       // one agent on one problem
void add_evaluate(Command& program);     // agents against each other
void add_trace(Command& program);        // an execution for Perfetto
void add_execute(Command& program);      // one assignment for real
void add_profile(Command& program);      // measured nodes and links of a task
void add_calibrate(Command& program);    // this machine as a cluster
void add_compare(Command& program);      // the simulator against a real engine
void add_train(Command& program);        // an agent learns
void add_record(Command& program);       // episodes as a data set
void add_dataset(Command& program);      // recorded data sets
void add_results(Command& program);      // grids of runs, a row file each
void add_leaderboard(Command& program);  // suites, rows, ranking, report
void add_bench(Command& program);        // speed of the simulator here

}  // namespace doppler::cli
