// Tensor programs: parts of dimensions, checks, and the meaning of the workloads' programs against
// direct computations.
#include <Eigen/Dense>
#include <cmath>

#include "datasets/programs/operations.h"
#include "datasets/programs/sharding.h"
#include "datasets/workloads.h"
#include "tests/support/catch.h"
#include "tests/support/tensor_evaluator.h"

using namespace doppler;
using doppler::testing::Array;

namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix matrix(const Array& array) {
  return Eigen::Map<const Matrix>(array.data.data(), array.shape.at(0), array.shape.at(1));
}

Program program_of(const std::string& spelling) {
  const NamedCall call = NamedCall::parse(spelling);
  const WorkloadEntry& entry = workloads().at(call.name);
  return entry.program(Parameters(entry.parameters, call), 1);
}

ValueId find(const Program& program, const std::string& name) {
  for (std::size_t i = 0; i < program.values().size(); ++i) {
    if (program.values()[i].name == name) return ValueId(static_cast<std::int64_t>(i));
  }
  throw std::logic_error("no value " + name);
}

// All values of a program with random inputs, by name.
struct Evaluated {
  explicit Evaluated(const std::string& spelling, std::uint64_t seed = 11)
      : program(program_of(spelling)),
        values(
            doppler::testing::evaluate(program, doppler::testing::random_inputs(program, seed))) {}
  const Array& operator[](const std::string& name) const {
    return values[find(program, name).index()];
  }
  Program program;
  std::vector<Array> values;
};

Matrix softmax_rows(const Matrix& scores) {
  Matrix result = scores.array().exp();
  for (Eigen::Index row = 0; row < result.rows(); ++row) result.row(row) /= result.row(row).sum();
  return result;
}

Matrix rms_norm_rows(const Matrix& x, const Array& weight) {
  Matrix result = x;
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    const double root = std::sqrt(x.row(row).squaredNorm() / static_cast<double>(x.cols()) + 1e-5);
    for (Eigen::Index column = 0; column < x.cols(); ++column) {
      result(row, column) = x(row, column) / root * weight.data[static_cast<std::size_t>(column)];
    }
  }
  return result;
}

double distance(const Matrix& a, const Matrix& b) { return (a - b).cwiseAbs().maxCoeff(); }

// The last value of a llama block of one layer from its definition, with one head's width d and
// complex numbers in consecutive pairs.
Matrix llama_block(const Evaluated& run, bool causal, std::int64_t n_heads) {
  const Matrix x = matrix(run["tokens"]);
  const Eigen::Index rows = x.rows();
  const Eigen::Index width = x.cols();
  const Eigen::Index d = width / n_heads;
  const auto as_matrix = [&](const std::string& name, Eigen::Index n_rows) {
    const Array& array = run[name];
    return Matrix(Eigen::Map<const Matrix>(array.data.data(), n_rows,
                                           static_cast<Eigen::Index>(array.data.size()) / n_rows));
  };
  const Matrix norm = rms_norm_rows(x, run["attention_norm_weight"]);
  Matrix q = norm * as_matrix("Q_weight", width);
  Matrix k = norm * as_matrix("K_weight", width);
  const Matrix v = norm * as_matrix("V_weight", width);
  const Array& table = run["rotary_table"];
  const auto rotate = [&](Matrix& m) {
    for (Eigen::Index s = 0; s < rows; ++s) {
      for (Eigen::Index column = 0; column < width; column += 2) {
        const Eigen::Index pair = column % d / 2;
        const auto at = [&](Eigen::Index plane) {
          return table
              .data[static_cast<std::size_t>((plane * table.shape[1] + s) * table.shape[2] + pair)];
        };
        const double real = m(s, column);
        const double imaginary = m(s, column + 1);
        m(s, column) = real * at(0) - imaginary * at(1);
        m(s, column + 1) = real * at(1) + imaginary * at(0);
      }
    }
  };
  rotate(q);
  rotate(k);
  Matrix mixed(rows, width);
  for (Eigen::Index head = 0; head < n_heads; ++head) {
    Matrix scores = q.middleCols(head * d, d) * k.middleCols(head * d, d).transpose() /
                    std::sqrt(static_cast<double>(d));
    for (Eigen::Index s = 0; causal && s < rows; ++s) {
      for (Eigen::Index t = s + 1; t < rows; ++t) scores(s, t) = -1e300;
    }
    mixed.middleCols(head * d, d) = softmax_rows(scores) * v.middleCols(head * d, d);
  }
  const Matrix attended = x + mixed * as_matrix("projection_weight", width);
  const Matrix second = rms_norm_rows(attended, run["ffn_norm_weight"]);
  const Matrix gate = second * matrix(run["gate_weight"]);
  const Matrix up = second * matrix(run["up_weight"]);
  const Matrix gated = (gate.array() / (1 + (-gate.array()).exp()) * up.array()).matrix();
  return attended + gated * matrix(run["down_weight"]);
}

}  // namespace

TEST_CASE("Parts of a dimension cover it in order and differ by at most one element") {
  for (std::int64_t size : {1, 7, 12, 100}) {
    for (std::int64_t n_parts = 1; n_parts <= size; ++n_parts) {
      std::int64_t end = 0;
      for (std::int64_t part = 0; part < n_parts; ++part) {
        const Range range = part_range(size, n_parts, part);
        CHECK(range.begin == end);
        CHECK(range.size() >= size / n_parts);
        CHECK(range.size() <= (size + n_parts - 1) / n_parts);
        for (std::int64_t at = range.begin; at < range.end; ++at) {
          CHECK(part_of(size, n_parts, at) == part);
        }
        end = range.end;
      }
      CHECK(end == size);
    }
  }
  CHECK(part_range(std::int64_t{1} << 40, 3, 2) == Range{733007751850, 1099511627776});
}

TEST_CASE("A cut into a multiple of parts refines the coarser cut") {
  for (std::int64_t part = 0; part < 3; ++part) {
    CHECK(part_range(17, 3, part).begin == part_range(17, 12, 4 * part).begin);
  }
}

TEST_CASE("chainmm computes (A B) C + D E") {
  const Evaluated run("chainmm(n=9,shards=2)");
  const Matrix expected =
      matrix(run["A"]) * matrix(run["B"]) * matrix(run["C"]) + matrix(run["D"]) * matrix(run["E"]);
  CHECK(distance(matrix(run["result"]), expected) < 1e-12);
}

TEST_CASE("ffnn computes softmax(relu(X W1) W2)") {
  const Evaluated run("ffnn(batch=9,inputs=4,hidden=11,outputs=5,shards=2)");
  const Matrix active = (matrix(run["X"]) * matrix(run["W1"])).cwiseMax(0);
  CHECK(distance(matrix(run["result"]), softmax_rows(active * matrix(run["W2"]))) < 1e-12);
}

TEST_CASE("ffnn-train computes the gradients that finite differences give") {
  const std::string spelling = "ffnn-train(batch=6,inputs=3,hidden=5,outputs=4,shards=2)";
  Program program = program_of(spelling);
  auto inputs = doppler::testing::random_inputs(program, 5);
  // Cross entropy has this gradient where every row of the target sums to one.
  Array& target = inputs[find(program, "target").index()];
  for (std::size_t row = 0; row < 6; ++row) {
    double sum = 0;
    for (std::size_t column = 0; column < 4; ++column) {
      double& x = target.data[row * 4 + column];
      x = std::abs(x) + 0.1;
      sum += x;
    }
    for (std::size_t column = 0; column < 4; ++column) target.data[row * 4 + column] /= sum;
  }
  const auto loss = [&](const Matrix& w1, const Matrix& w2) {
    const Matrix x = matrix(inputs[find(program, "X").index()]);
    const Matrix shares = softmax_rows((x * w1).cwiseMax(0) * w2);
    return -(matrix(target).array() * shares.array().log()).sum();
  };
  const auto values = doppler::testing::evaluate(program, inputs);
  const Matrix w1 = matrix(values[find(program, "W1").index()]);
  const Matrix w2 = matrix(values[find(program, "W2").index()]);
  const Matrix w1_gradient = matrix(values[find(program, "W1_gradient").index()]);
  const Matrix w2_gradient = matrix(values[find(program, "W2_gradient").index()]);
  constexpr double kStep = 1e-6;
  for (Eigen::Index i = 0; i < w1.rows(); ++i) {
    for (Eigen::Index j = 0; j < w1.cols(); ++j) {
      Matrix up = w1;
      Matrix down = w1;
      up(i, j) += kStep;
      down(i, j) -= kStep;
      CHECK(w1_gradient(i, j) ==
            Approx((loss(up, w2) - loss(down, w2)) / (2 * kStep)).margin(1e-7).epsilon(1e-6));
    }
  }
  for (Eigen::Index i = 0; i < w2.rows(); ++i) {
    for (Eigen::Index j = 0; j < w2.cols(); ++j) {
      Matrix up = w2;
      Matrix down = w2;
      up(i, j) += kStep;
      down(i, j) -= kStep;
      CHECK(w2_gradient(i, j) ==
            Approx((loss(w1, up) - loss(w1, down)) / (2 * kStep)).margin(1e-7).epsilon(1e-6));
    }
  }
}

TEST_CASE("llama-block computes attention and a gated feed-forward network") {
  const Evaluated run("llama-block(sequence=5,width=12,heads=3,hidden=7,shards=2)");
  CHECK(distance(matrix(run["output"]), llama_block(run, false, 3)) < 1e-11);
}

TEST_CASE("llama-layer scores the words after the last token, causally masked") {
  const Evaluated run("llama-layer(sequence=5,width=12,heads=3,hidden=7,vocabulary=8,shards=2)");
  const Matrix output = llama_block(run, true, 3);
  CHECK(distance(matrix(run["output"]), output) < 1e-11);
  const Matrix norm = rms_norm_rows(output, run["final_norm_weight"]);
  const Matrix logits = norm.bottomRows(1) * matrix(run["vocabulary_weight"]);
  for (std::size_t word = 0; word < 8; ++word) {
    CHECK(run["logits"].data[word] ==
          Approx(logits(0, static_cast<Eigen::Index>(word))).epsilon(1e-10));
  }
}

TEST_CASE("moe with room for all and every expert chosen is the weighted sum of all experts") {
  const Evaluated run("moe(groups=2,tokens=3,width=4,hidden=5,experts=3,top_k=3,capacity=3)");
  for (std::size_t row = 0; row < 6; ++row) {
    const auto vector = [&](const Array& array, std::size_t first, Eigen::Index n_columns) {
      return Matrix(Eigen::Map<const Matrix>(array.data.data() + first, 1, n_columns));
    };
    const Matrix token = vector(run["tokens"], row * 4, 4);
    const Matrix shares = softmax_rows(token * matrix(run["gate_weight"]));
    Matrix expected = token;
    for (std::size_t expert = 0; expert < 3; ++expert) {
      const Matrix up = Eigen::Map<const Matrix>(run["up_weight"].data.data() + expert * 20, 4, 5);
      const Matrix down =
          Eigen::Map<const Matrix>(run["down_weight"].data.data() + expert * 20, 5, 4);
      expected += shares(0, static_cast<Eigen::Index>(expert)) * (token * up).cwiseMax(0) * down;
    }
    CHECK(distance(vector(run["result"], row * 4, 4), expected) < 1e-12);
  }
}

TEST_CASE("moe drops the tokens for which an expert has no room") {
  const Evaluated run("moe(groups=1,tokens=4,width=2,hidden=3,experts=2,top_k=1,capacity=1)", 2);
  const Array& combine = run["combine"];
  const Array& shares = run["shares"];
  std::vector<std::size_t> n_given(2, 0);
  for (std::size_t token = 0; token < 4; ++token) {
    const double first = shares.data[token * 2];
    const double second = shares.data[token * 2 + 1];
    const std::size_t best = second > first ? 1 : 0;
    const double expected = n_given[best]++ == 0 ? std::max(first, second) : 0;
    CHECK(combine.data[token * 2 + best] == expected);
    CHECK(combine.data[token * 2 + 1 - best] == 0);
  }
}

TEST_CASE("A reader of unequal parts takes pieces of several blocks") {
  // 10 elements: the producer's parts are 0-2, 3-5, 6-9, the reader's 0-4, 5-9.
  Program program("parts");
  const DimensionId i = program.dimension("i", 10);
  const ValueId x = program.input("x", {i});
  const ValueId y = unary(program, "y", "exp", x, {{i, 3}});
  unary(program, "z", "square", y, {{i, 2}});
  const auto values =
      doppler::testing::evaluate(program, doppler::testing::random_inputs(program, 1));
  const ShardedProgram direct = shard(program);
  CHECK(direct.graph.n_nodes() == 5);
  CHECK(direct.graph.n_edges() == 4);
  CHECK(
      doppler::testing::relative_error(
          direct,
          doppler::testing::evaluate(direct.graph, doppler::testing::input_blocks(direct, values)),
          values) == 0);
  const ShardedProgram sliced = shard(program, {.slices = true});
  CHECK(sliced.graph.n_nodes() == 5 + 2 + 2);  // two slices of the middle block, two concatenations
  CHECK(sliced.graph.n_edges() == 2 + 2 * 2 + 2);
  CHECK(
      doppler::testing::relative_error(
          sliced,
          doppler::testing::evaluate(sliced.graph, doppler::testing::input_blocks(sliced, values)),
          values) == 0);
}

TEST_CASE("A contraction that is not cut is aggregated only if all are") {
  Program program("product");
  const DimensionId i = program.dimension("i", 4);
  const DimensionId k = program.dimension("k", 4);
  const ValueId a = program.input("a", {i, k});
  const ValueId b = program.input("b", {k});
  einsum(program, "c", a, b, {i}, {{i, 2}});
  CHECK(shard(program).graph.n_nodes() == 4);
  CHECK(shard(program, {.aggregate_all = false}).graph.n_nodes() == 2);
}

TEST_CASE("A program refuses sizes and cuts that cannot be") {
  Program program("p");
  CHECK_THROWS_AS(program.dimension("i", 0), UsageError);
  CHECK_THROWS_AS(program.dimension("i", (std::int64_t{1} << 40) + 1), UsageError);
  const DimensionId i = program.dimension("i", 3);
  const DimensionId j = program.dimension("j", std::int64_t{1} << 40);
  CHECK_THROWS_AS(program.input("x", {j, i, j}), UsageError);
  const ValueId x = program.input("x", {i});
  CHECK_THROWS_AS(unary(program, "y", "exp", x, {{i, 4}}), UsageError);
  CHECK_THROWS_AS(unary(program, "y", "exp", x, {{j, 2}}), std::logic_error);
}
