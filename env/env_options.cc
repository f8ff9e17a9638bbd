#include "env/env_options.h"

#include <ostream>

#include "graphs/enum_names.h"

namespace doppler {
namespace {

constexpr EnumName<Reward> kRewards[] = {{Reward::sparse, "sparse"}, {Reward::dense, "dense"}};
constexpr EnumName<Features> kFeatures[] = {{Features::paper, "paper"}, {Features::full, "full"}};
constexpr EnumName<PlaceOrder> kOrders[] = {{PlaceOrder::b_level, "b_level"},
                                            {PlaceOrder::topological, "topological"}};
constexpr EnumName<OnIllegal> kOnIllegal[] = {{OnIllegal::raise, "raise"},
                                              {OnIllegal::penalize, "penalize"}};

}  // namespace

std::string_view to_string(Reward reward) { return enum_name<Reward>(kRewards, reward); }
std::string_view to_string(Features features) { return enum_name<Features>(kFeatures, features); }
std::string_view to_string(PlaceOrder order) { return enum_name<PlaceOrder>(kOrders, order); }
std::string_view to_string(OnIllegal on_illegal) {
  return enum_name<OnIllegal>(kOnIllegal, on_illegal);
}
Reward parse_reward(std::string_view name) { return parse_enum<Reward>(kRewards, "reward", name); }
Features parse_features(std::string_view name) {
  return parse_enum<Features>(kFeatures, "feature set", name);
}
PlaceOrder parse_place_order(std::string_view name) {
  return parse_enum<PlaceOrder>(kOrders, "order", name);
}
OnIllegal parse_on_illegal(std::string_view name) {
  return parse_enum<OnIllegal>(kOnIllegal, "on_illegal", name);
}

std::ostream& operator<<(std::ostream& out, const EnvOptions& options) {
  return out << "mode " << options.mode << ", reward " << to_string(options.reward) << ", features "
             << to_string(options.features) << ", order " << to_string(options.order)
             << ", on_illegal " << to_string(options.on_illegal) << ", engine " << options.engine
             << (options.factored ? ", factored" : "");
}

}  // namespace doppler
