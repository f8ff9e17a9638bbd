#include "agents/learned/teacher.h"

#include <utility>

namespace doppler {

namespace {

void largest_b_levels(const PartialSchedule& schedule, std::vector<NodeId>& out) {
  const std::vector<double>& levels = schedule.model().levels().b_level;
  out.clear();
  for (NodeId node : schedule.candidates()) {
    const double level = levels[node.index()];
    if (!out.empty() && level < levels[out.front().index()]) continue;
    if (!out.empty() && level > levels[out.front().index()]) out.clear();
    out.push_back(node);
  }
}

class CriticalPathTeacher : public Teacher {
 public:
  void begin(std::shared_ptr<const PlacementModel> model, std::uint64_t /*seed*/) override {
    starts_.resize(model->n_devices());
  }
  void nodes(const PartialSchedule& schedule, std::vector<NodeId>& out) override {
    largest_b_levels(schedule, out);
  }
  void devices(const PartialSchedule& schedule, NodeId node, std::vector<DeviceId>& out) override {
    schedule.earliest_starts(node, starts_);
    out.clear();
    for (std::size_t d = 0; d < starts_.size(); ++d) {
      if (!out.empty() && starts_[d] > starts_[out.front().index()]) continue;
      if (!out.empty() && starts_[d] < starts_[out.front().index()]) out.clear();
      out.push_back(DeviceId(static_cast<std::int64_t>(d)));
    }
  }

 private:
  std::vector<double> starts_;
};

class StepTeacher : public Teacher {
 public:
  explicit StepTeacher(std::unique_ptr<Agent> agent) : agent_(std::move(agent)) {}

  void begin(std::shared_ptr<const PlacementModel> model, std::uint64_t seed) override {
    agent_->begin(std::move(model), seed);
  }
  void nodes(const PartialSchedule& schedule, std::vector<NodeId>& out) override {
    out.assign(1, agent_->select(schedule));
  }
  void devices(const PartialSchedule& schedule, NodeId node, std::vector<DeviceId>& out) override {
    out.assign(1, agent_->place(schedule, node));
  }

 private:
  std::unique_ptr<Agent> agent_;
};

class AssignmentTeacher : public Teacher {
 public:
  explicit AssignmentTeacher(Assignment assignment) : assignment_(std::move(assignment)) {}

  void begin(std::shared_ptr<const PlacementModel> /*model*/, std::uint64_t /*seed*/) override {}
  void nodes(const PartialSchedule& schedule, std::vector<NodeId>& out) override {
    largest_b_levels(schedule, out);
  }
  void devices(const PartialSchedule& /*schedule*/, NodeId node,
               std::vector<DeviceId>& out) override {
    out.assign(1, assignment_[node]);
  }

 private:
  Assignment assignment_;
};

class DemonstrationTeacher : public Teacher {
 public:
  explicit DemonstrationTeacher(Demonstration demonstration)
      : assignment_(std::move(demonstration.assignment)), place_(demonstration.order.size()) {
    for (std::size_t i = 0; i < demonstration.order.size(); ++i) {
      place_[demonstration.order[i].index()] = i;
    }
  }

  void begin(std::shared_ptr<const PlacementModel> /*model*/, std::uint64_t /*seed*/) override {}
  void nodes(const PartialSchedule& schedule, std::vector<NodeId>& out) override {
    out.assign(1, schedule.candidates().front());
    for (NodeId node : schedule.candidates()) {
      if (place_[node.index()] < place_[out.front().index()]) out.front() = node;
    }
  }
  void devices(const PartialSchedule& /*schedule*/, NodeId node,
               std::vector<DeviceId>& out) override {
    out.assign(1, assignment_[node]);
  }

 private:
  Assignment assignment_;
  std::vector<std::size_t> place_;  // in the order, by node
};

}  // namespace

std::unique_ptr<Teacher> demonstration_teacher(Demonstration demonstration) {
  return std::make_unique<DemonstrationTeacher>(std::move(demonstration));
}

std::unique_ptr<Teacher> critical_path_teacher() { return std::make_unique<CriticalPathTeacher>(); }

std::unique_ptr<Teacher> step_teacher(std::unique_ptr<Agent> agent) {
  return std::make_unique<StepTeacher>(std::move(agent));
}

std::unique_ptr<Teacher> assignment_teacher(Assignment assignment) {
  return std::make_unique<AssignmentTeacher>(std::move(assignment));
}

}  // namespace doppler
