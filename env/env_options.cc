#include "env/env_options.h"

#include <ostream>
#include <span>
#include <stdexcept>
#include <utility>

#include "graphs/error.h"

namespace doppler {
namespace {

template <class T>
using Name = std::pair<T, std::string_view>;

constexpr Name<Reward> kRewards[] = {{Reward::sparse, "sparse"}, {Reward::dense, "dense"}};
constexpr Name<Features> kFeatures[] = {{Features::paper, "paper"}, {Features::full, "full"}};
constexpr Name<PlaceOrder> kOrders[] = {{PlaceOrder::b_level, "b_level"},
                                        {PlaceOrder::topological, "topological"}};
constexpr Name<OnIllegal> kOnIllegal[] = {{OnIllegal::raise, "raise"},
                                          {OnIllegal::penalize, "penalize"}};

template <class T>
std::string_view name_of(std::span<const Name<T>> names, T value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  throw std::logic_error("an enumerator without a name");
}

template <class T>
T parse(std::span<const Name<T>> names, std::string_view what, std::string_view text) {
  std::string known_names;
  for (const auto& [known, name] : names) {
    if (name == text) return known;
    known_names += " " + std::string(name);
  }
  throw UsageError("unknown " + std::string(what) + " '" + std::string(text.substr(0, 40)) +
                   "'; known:" + known_names);
}

}  // namespace

std::string_view to_string(Reward reward) { return name_of<Reward>(kRewards, reward); }
std::string_view to_string(Features features) { return name_of<Features>(kFeatures, features); }
std::string_view to_string(PlaceOrder order) { return name_of<PlaceOrder>(kOrders, order); }
std::string_view to_string(OnIllegal on_illegal) {
  return name_of<OnIllegal>(kOnIllegal, on_illegal);
}
Reward parse_reward(std::string_view name) { return parse<Reward>(kRewards, "reward", name); }
Features parse_features(std::string_view name) {
  return parse<Features>(kFeatures, "feature set", name);
}
PlaceOrder parse_place_order(std::string_view name) {
  return parse<PlaceOrder>(kOrders, "order", name);
}
OnIllegal parse_on_illegal(std::string_view name) {
  return parse<OnIllegal>(kOnIllegal, "on_illegal", name);
}

std::ostream& operator<<(std::ostream& out, const EnvOptions& options) {
  return out << "mode " << options.mode << ", reward " << to_string(options.reward) << ", features "
             << to_string(options.features) << ", order " << to_string(options.order)
             << ", on_illegal " << to_string(options.on_illegal) << ", engine " << options.engine
             << (options.factored ? ", factored" : "");
}

}  // namespace doppler
