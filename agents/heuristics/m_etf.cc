// m-ETF: of all candidates and devices, the pair that can start first; devices without room are
// passed over.
//
// Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020, algorithm
// m-ETF, after ETF of Hwang, Chow, Anger, Lee, SIAM J. Computing 18(2), 1989. Ties go to the larger
// b-level, the smaller id, the smaller device. Where memory is enforced, memory is first reserved
// for good, so that an assignment which this finds fits in every order of execution; if a node then
// fits nowhere, tensors are given back after their last reader; if that is not enough either, such
// a node goes where most room is left, and the engine has the last word.
#include <algorithm>
#include <optional>
#include <queue>
#include <tuple>

#include "agents/heuristics/heuristics.h"
#include "agents/heuristics/memory_ledger.h"

namespace doppler {

namespace {

// The pairs of one device. Those whose data is there wait for the device alone; the others are
// sorted by the arrival of their data. Both only ever move forward, so that a pair is moved once.
class Pairs {
 public:
  struct Head {
    double start = 0;
    double b_level = 0;
    NodeId node;
  };

  void add(double ready, double b_level, NodeId node) { arriving_.push({ready, b_level, node}); }
  // The pair that starts first on the device if it is free from `free` on; none: std::nullopt.
  std::optional<Head> head(const PartialSchedule& schedule, double free) {
    const auto drop_placed = [&](auto& queue) {
      while (!queue.empty() && schedule.placed(queue.top().node)) queue.pop();
    };
    for (drop_placed(arriving_); !arriving_.empty() && arriving_.top().start <= free;
         drop_placed(arriving_)) {
      present_.push(arriving_.top());
      arriving_.pop();
    }
    drop_placed(present_);
    if (!present_.empty()) return Head{free, present_.top().b_level, present_.top().node};
    if (!arriving_.empty()) return arriving_.top();
    return std::nullopt;
  }
  // Drops what head() returned last.
  void pop() {
    if (!present_.empty()) {
      present_.pop();
    } else {
      arriving_.pop();
    }
  }

 private:
  struct LowerLevel {
    bool operator()(const Head& a, const Head& b) const {
      return std::tie(a.b_level, b.node) < std::tie(b.b_level, a.node);
    }
  };
  struct LaterStart {
    bool operator()(const Head& a, const Head& b) const {
      return a.start != b.start ? a.start > b.start : LowerLevel{}(a, b);
    }
  };
  std::priority_queue<Head, std::vector<Head>, LowerLevel> present_;
  std::priority_queue<Head, std::vector<Head>, LaterStart> arriving_;
};

enum class Memory { ignored, reserved, released };

class Attempt {
 public:
  Attempt(std::shared_ptr<const PlacementModel> model, Memory memory)
      : model_(model),
        memory_(memory),
        schedule_(model),
        pairs_(model->n_devices()),
        pairs_left_(model->n_nodes(), static_cast<std::int32_t>(model->n_devices())),
        ready_(model->n_devices()) {
    if (memory == Memory::reserved) ledger_.emplace(model, MemoryLedger::Release::never);
    if (memory == Memory::released) {
      ledger_.emplace(model, MemoryLedger::Release::after_last_reader);
    }
  }

  // Nothing if a node fits nowhere while memory is reserved.
  std::optional<Assignment> run() {
    for (NodeId node : schedule_.candidates()) offer(node);
    while (!schedule_.complete()) {
      const auto [node, device] = first_pair();
      if (!ledger_ || ledger_->fits(node, device)) {
        place(node, device);
        continue;
      }
      pairs_[device.index()].pop();
      if (--pairs_left_[node.index()] > 0) continue;
      if (memory_ == Memory::reserved) return std::nullopt;
      place(node, roomiest());
    }
    return schedule_.assignment();
  }

 private:
  void offer(NodeId node) {
    schedule_.data_ready(node, ready_);
    const double b_level = model_->levels().b_level[node.index()];
    for (std::size_t d = 0; d < pairs_.size(); ++d) pairs_[d].add(ready_[d], b_level, node);
  }

  std::pair<NodeId, DeviceId> first_pair() {
    std::optional<Pairs::Head> best;
    DeviceId best_device;
    for (std::size_t d = 0; d < pairs_.size(); ++d) {
      const DeviceId device{static_cast<std::int64_t>(d)};
      const auto head = pairs_[d].head(schedule_, schedule_.device_free(device));
      if (!head) continue;
      if (best && std::tie(best->start, head->b_level, best->node) <=
                      std::tie(head->start, best->b_level, head->node)) {
        continue;
      }
      best = head;
      best_device = device;
    }
    return {best->node, best_device};  // every unplaced candidate has a pair left
  }

  void place(NodeId node, DeviceId device) {
    schedule_.place(node, device);
    if (ledger_) ledger_->place(node, device);
    for (NodeId successor : model_->successors(node)) {
      if (schedule_.is_candidate(successor)) offer(successor);
    }
  }

  [[nodiscard]] DeviceId roomiest() const {
    DeviceId best{0};
    for (std::size_t d = 1; d < pairs_.size(); ++d) {
      const DeviceId device{static_cast<std::int64_t>(d)};
      if (ledger_->room(device) > ledger_->room(best)) best = device;
    }
    return best;
  }

  std::shared_ptr<const PlacementModel> model_;
  Memory memory_;
  PartialSchedule schedule_;
  std::optional<MemoryLedger> ledger_;
  std::vector<Pairs> pairs_;              // by device
  std::vector<std::int32_t> pairs_left_;  // by node
  std::vector<double> ready_;             // by device
};

class MEtf : public Agent {
 public:
  [[nodiscard]] bool has_steps() const override { return false; }

  // O((edges + nodes log nodes) x devices).
  Decision decide(std::shared_ptr<const PlacementModel> model,
                  const AssignOptions& /*options*/) override {
    if (!model->task().options.enforce_memory) {
      return {.assignment = *Attempt(model, Memory::ignored).run()};
    }
    std::optional<Assignment> assignment = Attempt(model, Memory::reserved).run();
    if (!assignment) assignment = Attempt(model, Memory::released).run();
    return {.assignment = std::move(*assignment)};
  }
};

}  // namespace

AgentEntry m_etf_entry() {
  AgentEntry entry;
  entry.name = "m-etf";
  entry.summary = "the node and device that can start first; devices without memory passed over";
  entry.source = "Jeon et al., Baechi, SoCC 2020; Hwang et al., SIAM J. Comp. 18(2)";
  entry.family = "heuristic";
  entry.deterministic = true;
  entry.make = [](const Parameters&) { return std::make_unique<MEtf>(); };
  return entry;
}

}  // namespace doppler
