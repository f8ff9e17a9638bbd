#include "datasets/programs/operations.h"

#include <utility>

namespace doppler {
namespace {

constexpr double kNormEpsilon = 1e-5;

Operand whole(const Program& program, ValueId value) {
  return {value, program.at(value).dimensions};
}

Dimensions without(Dimensions dimensions, DimensionId dimension) {
  std::erase(dimensions, dimension);
  return dimensions;
}

ValueId elementwise(Program& program, const std::string& name, Operation operation) {
  operation.result_dimensions = program.at(operation.operands.front().value).dimensions;
  operation.dtype = program.at(operation.operands.front().value).dtype;
  return program.add(name, std::move(operation));
}

}  // namespace

ValueId einsum(Program& program, const std::string& name, ValueId a, ValueId b, Dimensions result,
               const Cut& cut) {
  return einsum(program, name, {whole(program, a), whole(program, b)}, std::move(result), cut);
}

ValueId einsum(Program& program, const std::string& name, std::pair<Operand, Operand> operands,
               Dimensions result, const Cut& cut) {
  const DType dtype = program.at(operands.first.value).dtype;
  return program.add(name, {.kind = "einsum",
                            .operands = {std::move(operands.first), std::move(operands.second)},
                            .result_dimensions = std::move(result),
                            .cut = cut,
                            .dtype = dtype});
}

ValueId unary(Program& program, const std::string& name, const std::string& kind, ValueId x,
              const Cut& cut) {
  return elementwise(
      program, name,
      {.kind = kind, .operands = {whole(program, x)}, .result_dimensions = {}, .cut = cut});
}

ValueId affine(Program& program, const std::string& name, ValueId x, double factor, double offset,
               const Cut& cut) {
  return elementwise(program, name,
                     {.kind = "affine",
                      .operands = {whole(program, x)},
                      .result_dimensions = {},
                      .cut = cut,
                      .factor = factor,
                      .offset = offset});
}

ValueId cast(Program& program, const std::string& name, ValueId x, DType dtype, const Cut& cut) {
  return program.add(name, {.kind = "cast",
                            .operands = {whole(program, x)},
                            .result_dimensions = program.at(x).dimensions,
                            .cut = cut,
                            .dtype = dtype});
}

ValueId binary(Program& program, const std::string& name, const std::string& kind, ValueId a,
               ValueId b, const Cut& cut) {
  return elementwise(program, name,
                     {.kind = kind,
                      .operands = {whole(program, a), whole(program, b)},
                      .result_dimensions = {},
                      .cut = cut});
}

ValueId reduce(Program& program, const std::string& name, const std::string& kind, ValueId x,
               DimensionId over, const Cut& cut) {
  return program.add(name, {.kind = kind,
                            .operands = {whole(program, x)},
                            .result_dimensions = without(program.at(x).dimensions, over),
                            .cut = cut,
                            .dtype = program.at(x).dtype});
}

ValueId transpose(Program& program, const std::string& name, ValueId x, Dimensions result,
                  const Cut& cut) {
  return program.add(name, {.kind = "transpose",
                            .operands = {whole(program, x)},
                            .result_dimensions = std::move(result),
                            .cut = cut,
                            .dtype = program.at(x).dtype});
}

ValueId select(Program& program, const std::string& name, ValueId x, DimensionId along,
               DimensionId to, std::int64_t start, const Cut& cut) {
  Operand operand = whole(program, x);
  for (DimensionId& label : operand.labels) {
    operand.offset.push_back(label == along ? start : 0);
    if (label == along) label = to;
  }
  Dimensions result = operand.labels;
  return program.add(name, {.kind = "select",
                            .operands = {std::move(operand)},
                            .result_dimensions = std::move(result),
                            .cut = cut,
                            .dtype = program.at(x).dtype});
}

ValueId squeeze(Program& program, const std::string& name, ValueId x, DimensionId gone,
                const Cut& cut) {
  return program.add(name, {.kind = "squeeze",
                            .operands = {whole(program, x)},
                            .result_dimensions = without(program.at(x).dimensions, gone),
                            .cut = cut,
                            .dtype = program.at(x).dtype});
}

ValueId causal_mask(Program& program, const std::string& name, DimensionId query, DimensionId key,
                    DType dtype, const Cut& cut) {
  return program.add(name, {.kind = "fill",
                            .operands = {},
                            .result_dimensions = {query, key},
                            .cut = cut,
                            .dtype = dtype});
}

ValueId softmax(Program& program, const std::string& name, ValueId x, DimensionId over,
                const Cut& cut) {
  const ValueId largest = reduce(program, name + ".largest", "max", x, over, cut);
  const ValueId shifted = binary(program, name + ".shifted", "subtract", x, largest, cut);
  const ValueId powers = unary(program, name + ".powers", "exp", shifted, cut);
  const ValueId total = reduce(program, name + ".total", "sum", powers, over, cut);
  return binary(program, name, "divide", powers, total, cut);
}

ValueId rms_norm(Program& program, const std::string& name, ValueId x, ValueId weight,
                 DimensionId over, const RmsNormCuts& cuts) {
  const DType dtype = program.at(x).dtype;
  const auto size = static_cast<double>(program.at(over).size);
  const ValueId wide = cast(program, name + ".wide", x, DType::float32, cuts.squares);
  const ValueId squares = unary(program, name + ".squares", "square", wide, cuts.squares);
  const ValueId total = reduce(program, name + ".total", "sum", squares, over, cuts.squares);
  const ValueId mean = affine(program, name + ".mean", total, 1 / size, kNormEpsilon, cuts.rows);
  const ValueId root = unary(program, name + ".root", "rsqrt", mean, cuts.rows);
  const ValueId scaled = binary(program, name + ".scaled", "multiply", wide, root, cuts.result);
  const ValueId narrow = cast(program, name + ".narrow", scaled, dtype, cuts.result);
  return binary(program, name, "multiply", narrow, weight, cuts.result);
}

ValueId rotary(Program& program, const std::string& name, ValueId x, const Operand& table,
               DimensionId plane, const Cut& cut) {
  const Dimensions inner = program.at(x).dimensions;
  Dimensions planes = without(inner, plane);
  planes.insert(planes.begin(), plane);
  const DType dtype = program.at(x).dtype;
  const ValueId wide = cast(program, name + ".wide", x, DType::float32, cut);
  const ValueId complex = transpose(program, name + ".complex", wide, planes, cut);
  const ValueId rotated = elementwise(program, name + ".rotated",
                                      {.kind = "rotate",
                                       .operands = {whole(program, complex), table},
                                       .result_dimensions = {},
                                       .cut = cut});
  const ValueId real = transpose(program, name + ".real", rotated, inner, cut);
  return cast(program, name, real, dtype, cut);
}

}  // namespace doppler
