// A softmax over members that come and go, beside one that is computed anew at each step.
#include "agents/learned/softmax_tree.h"

#include <cmath>
#include <map>

#include "agents/draws.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

// What a member is and has gathered.
struct Member {
  double score = 0;
  double gathered = 0;
};

TEST_CASE("a softmax tree gathers what sums over all members would give") {
  Draws draws(3);
  SoftmaxTree tree;
  std::map<std::size_t, Member> members;
  for (int step = 0; step < 3000; ++step) {
    const auto what = draws.below(4);
    if (what == 0 || members.empty()) {
      // Scores far apart: what is small must not vanish in the rounding of what is large.
      const double score = 200 * draws.uniform() - 100;
      members[tree.insert(score)] = {.score = score};
    } else if (what == 1) {
      auto chosen = std::next(members.begin(), static_cast<long>(draws.below(members.size())));
      const double gathered = tree.gather(chosen->first);
      CHECK(std::abs(gathered - chosen->second.gathered) <=
            1e-9 * std::abs(chosen->second.gathered) + 1e-300);
      tree.erase(chosen->first);
      members.erase(chosen);
    } else {
      const double weight = 2 * draws.uniform();
      double sum = 0;
      for (const auto& [slot, member] : members) sum += std::exp(member.score);
      for (auto& [slot, member] : members) {
        member.gathered += weight * std::exp(member.score) / sum;
      }
      CHECK(tree.log_sum() == Approx(std::log(sum)).epsilon(1e-12));
      tree.add(weight);
    }
    CHECK(tree.size() == members.size());
  }
}

TEST_CASE("a softmax tree draws members by their probabilities") {
  SoftmaxTree tree;
  std::map<std::size_t, double> probability;
  for (double share : {0.1, 0.2, 0.3, 0.4}) probability[tree.insert(std::log(share))] = share;
  const std::size_t gone = tree.insert(5);
  tree.erase(gone);
  std::map<std::size_t, int> drawn;
  constexpr int kDraws = 10000;
  for (int i = 0; i < kDraws; ++i) ++drawn[tree.draw((i + 0.5) / kDraws)];
  // Quantiles that are spread evenly meet each member in its share exactly, but for the edges.
  for (const auto& [slot, share] : probability) {
    CHECK(std::abs(drawn[slot] - share * kDraws) <= 1);
  }
}

TEST_CASE("an empty softmax tree has no sum") {
  SoftmaxTree tree;
  CHECK(std::isinf(tree.log_sum()));
  const std::size_t slot = tree.insert(1);
  CHECK(tree.log_sum() == 1);
  tree.erase(slot);
  CHECK(std::isinf(tree.log_sum()));
  tree.clear();
  CHECK(tree.size() == 0);
}

}  // namespace
}  // namespace doppler
