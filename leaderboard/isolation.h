// Decisions in a process of their own: an agent that crashes, hangs, or takes too much memory ends
// that process, and nothing else.
#pragma once

#include <sys/types.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "leaderboard/protocol.h"

namespace doppler {

struct IsolationLimits {
  double memory = 8.0 * (1U << 30U);  // bytes of the process
  // Beside the tier's seconds to decide: for building tasks and executing assignments, in all.
  double other_seconds = 600;
};

// A process that was started for decisions, and the end of a pipe that it writes to.
struct DecisionProcess {
  pid_t id = -1;  // leader of a process group of its own
  int output = -1;
};

// Starts `command` with the keys on its standard input, one a line, and "--result-fd N" behind its
// words: it is to call serve_decisions() there. What it prints goes to standard error. Throws
// RunError if the system gives no process. Thread safe.
DecisionProcess start_decisions(const std::vector<std::string>& command,
                                std::span<const DecisionKey> keys, const IsolationLimits& limits);

// Follows a process to its end, calls `on_record` for each key in their order as records come, and
// returns. A key that the process did not answer is recorded with the reason, those behind it not
// at all. Ends the process group if it breaks a limit. Closes the pipe. Thread safe.
void follow_decisions(const DecisionProcess& process, const Suite& suite,
                      std::span<const DecisionKey> keys, const IsolationLimits& limits,
                      const std::function<void(DecisionRecord)>& on_record);

// What a process that was started without keys writes, to its end. Throws RunError if it crashes or
// takes longer than `seconds`. Closes the pipe.
std::string answer_of(const DecisionProcess& process, double seconds);

// In the process itself: makes the decisions in order, until one fails, and writes their records to
// the pipe. What an agent throws is recorded, nothing is thrown.
void serve_decisions(std::span<const DecisionKey> keys, int output);

// In the process itself: writes {"agents": [{"name": ..., "kind": ...}, ...]}.
void describe_agents(const std::vector<std::string>& names, int output);
// The same for those that cannot be had: {"failure": ...}.
void describe_failure(const std::string& reason, int output);

// In the process itself: what it allocates beyond so many bytes fails.
void limit_own_memory(double bytes);

}  // namespace doppler
