// The files of a folder of rows: what each is, and whether it holds.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "leaderboard/report.h"
#include "leaderboard/submission.h"
#include "leaderboard/verification.h"

namespace doppler::cli {

// Every file whose name ends with `extension`, in the folder and below it, sorted by path. Folders
// of rows under way (".part") are left out. Throws RunError for a folder that cannot be read.
std::vector<std::string> files_below(const std::string& folder, const std::string& extension);

struct CheckedFile {
  std::string path = {};
  std::string format = {};             // "doppler-submission", "doppler-result", "table", or ""
  std::optional<Submission> row = {};  // of a submission that could be read
  Verification verification = {};      // its faults hold whatever is wrong with the file
};

// Checks files of rows: submissions by a Verifier; rows of single runs (docs/result-rows.md) by
// running their assignments; tables of such rows by making them again from the rows beside them.
// Any other file is a fault. For one thread.
class FileChecker {
 public:
  FileChecker(std::vector<Suite> more_suites, bool executes_for_real)
      : verifier_(std::move(more_suites), executes_for_real) {}

  CheckedFile check(const std::string& path);

 private:
  void check_content(CheckedFile& file);
  void check_result(const std::string& content, const std::string& path);

  Verifier verifier_;
  std::map<std::string, Task> tasks_;
};

// The verified submissions of a folder by suite, those that were refused (files that are no rows of
// any kind among them), and those that failed.
LeaderboardRows read_leaderboard(const std::string& folder, const std::vector<Suite>& more_suites);

}  // namespace doppler::cli
