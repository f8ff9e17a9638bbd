// A value of ours among what an autograd function keeps for its backward pass.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <utility>

namespace doppler {

template <class T>
struct KeptValue : torch::CustomClassHolder {
  explicit KeptValue(std::shared_ptr<const T> kept) : value(std::move(kept)) {}
  std::shared_ptr<const T> value;
};

template <class T>
c10::IValue keep(std::shared_ptr<const T> value) {
  return c10::IValue::make_capsule(c10::make_intrusive<KeptValue<T>>(std::move(value)));
}

// What keep<T>() made.
template <class T>
std::shared_ptr<const T> kept_value(const c10::IValue& kept) {
  return static_cast<const KeptValue<T>&>(*kept.toCapsule()).value;
}

}  // namespace doppler
