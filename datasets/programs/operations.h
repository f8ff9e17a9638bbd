// Operations of tensor programs, and those that are made of several: softmax, RMSNorm, rotary.
//
// Every function adds to the program and returns the value that it made, called `name`; parts of a
// compound are called `name.part`. Values keep the dtype of the first operand unless said.
#pragma once

#include <string>
#include <utility>

#include "datasets/programs/program.h"

namespace doppler {

// sum over all dimensions that are not in `result` of a * b. The second form says by which
// dimensions the operands are walked: attention reads one sequence as queries and as keys.
ValueId einsum(Program& program, const std::string& name, ValueId a, ValueId b, Dimensions result,
               const Cut& cut);
ValueId einsum(Program& program, const std::string& name, std::pair<Operand, Operand> operands,
               Dimensions result, const Cut& cut);

// f(x) for each element: kind is "relu", "silu", "exp", "square", "rsqrt" or "positive" (1 if x >
// 0, else 0).
ValueId unary(Program& program, const std::string& name, const std::string& kind, ValueId x,
              const Cut& cut);
// factor x + offset
ValueId affine(Program& program, const std::string& name, ValueId x, double factor, double offset,
               const Cut& cut);
// x in another dtype; counts as arithmetic (one FLOP an element) also if the dtype is the same.
ValueId cast(Program& program, const std::string& name, ValueId x, DType dtype, const Cut& cut);

// a op b for each element of a: kind is "add", "subtract", "multiply" or "divide". The dimensions
// of b are some of those of a.
ValueId binary(Program& program, const std::string& name, const std::string& kind, ValueId a,
               ValueId b, const Cut& cut);

// "sum" or "max" over one dimension.
ValueId reduce(Program& program, const std::string& name, const std::string& kind, ValueId x,
               DimensionId over, const Cut& cut);

// The same elements, axes in another order.
ValueId transpose(Program& program, const std::string& name, ValueId x, Dimensions result,
                  const Cut& cut);

// Elements [start, start + size of `to`) of x along `along`, which is called `to` in the result.
ValueId select(Program& program, const std::string& name, ValueId x, DimensionId along,
               DimensionId to, std::int64_t start, const Cut& cut);

// x without the dimension `gone`, whose size is 1.
ValueId squeeze(Program& program, const std::string& name, ValueId x, DimensionId gone,
                const Cut& cut);

// mask[query, key] = 0 where key <= query, minus infinity elsewhere.
ValueId causal_mask(Program& program, const std::string& name, DimensionId query, DimensionId key,
                    DType dtype, const Cut& cut);

// exp(x - max x) / sum of exp(x - max x) along `over`: max, subtract, exp, sum, divide.
ValueId softmax(Program& program, const std::string& name, ValueId x, DimensionId over,
                const Cut& cut);

// weight x / sqrt(mean of x^2 along `over` + 1e-5), computed in float32: cast, square, sum, affine,
// rsqrt, multiply, cast back, multiply (Zhang, Sennrich, NeurIPS 2019).
struct RmsNormCuts {
  Cut squares;  // of the cast, the squares and their sum
  Cut rows;     // of the mean and its root, without `over`
  Cut result;   // of the products
};
ValueId rms_norm(Program& program, const std::string& name, ValueId x, ValueId weight,
                 DimensionId over, const RmsNormCuts& cuts);

// Rotary position embedding (Su et al., arXiv 2104.09864), computed in float32: x[..., pair, plane]
// holds complex numbers (plane 0: real part), each times table[plane, position, pair]. Cast, planes
// to the front, rotate, planes back, cast back. `plane` is not cut.
ValueId rotary(Program& program, const std::string& name, ValueId x, const Operand& table,
               DimensionId plane, const Cut& cut);

}  // namespace doppler
