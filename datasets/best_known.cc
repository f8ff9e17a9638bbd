#include "datasets/best_known.h"

#include <limits>
#include <vector>

#include "embedded/best_known.h"
#include "graphs/hash.h"
#include "graphs/strict_json.h"

namespace doppler {

BestKnown parse_best_known(std::string_view content, const std::string& source) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  const nlohmann::json document = parse_strict_json(content, source);
  const JsonElement root(document, source);
  root.expect_format("doppler-best-known", 1);
  root.allow_fields({"format", "version", "task", "task_hash", "makespan", "agent", "seed",
                     "max_evaluations", "code_version", "assignment"});
  BestKnown known;
  known.task = root.field("task").text();
  const auto hash = parse_hash(root.field("task_hash").text());
  if (!hash) root.field("task_hash").fail("expected 16 hexadecimal digits");
  known.task_hash = *hash;
  known.makespan = root.field("makespan").quantity();
  known.agent = root.field("agent").text();
  known.seed = static_cast<std::uint64_t>(root.field("seed").integer(0, kLargest));
  known.max_evaluations = root.field("max_evaluations").integer(1, kLargest);
  known.code_version = root.field("code_version").text();
  for (const JsonElement& device : root.field("assignment").elements()) {
    known.assignment.devices.emplace_back(
        device.integer(0, std::numeric_limits<std::int32_t>::max()));
  }
  return known;
}

std::span<const BestKnown> best_known() {
  static const std::vector<BestKnown> all = [] {
    std::vector<BestKnown> list;
    for (const embedded::File& file : embedded::best_known()) {
      list.push_back(parse_best_known(file.content, std::string(file.name)));
    }
    return list;
  }();
  return all;
}

const BestKnown* find_best_known(const Task& task) {
  Task plain = task;
  plain.options.seed = 0;
  plain.options.record_timeline = RunOptions{}.record_timeline;
  const std::uint64_t hash = plain.hash();
  for (const BestKnown& known : best_known()) {
    if (known.task_hash == hash) return &known;
  }
  return nullptr;
}

}  // namespace doppler
