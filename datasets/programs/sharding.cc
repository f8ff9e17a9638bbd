#include "datasets/programs/sharding.h"

#include <algorithm>
#include <map>
#include <optional>

#include "graphs/error.h"
#include "graphs/graph_builder.h"
#include "graphs/node_attributes.h"

namespace doppler {
namespace {

constexpr std::int64_t kMaxNodes = 2'000'000;
constexpr std::int64_t kMaxEdges = 16'000'000;

using Box = std::vector<Range>;

double elements(const Box& box) {
  double product = 1;
  for (const Range& range : box) product *= static_cast<double>(range.size());
  return product;
}

std::vector<std::int64_t> begins(const Box& box) {
  std::vector<std::int64_t> result;
  for (const Range& range : box) result.push_back(range.begin);
  return result;
}

std::vector<std::int64_t> extents(const Box& box) {
  std::vector<std::int64_t> result;
  for (const Range& range : box) result.push_back(range.size());
  return result;
}

// Calls visit(index) for every index vector below `counts`, last fastest.
template <class Visit>
void for_each_index(const std::vector<std::int64_t>& counts, Visit visit) {
  std::vector<std::int64_t> index(counts.size(), 0);
  while (true) {
    visit(index);
    std::size_t axis = counts.size();
    while (axis > 0 && ++index[axis - 1] == counts[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

std::string bracketed(const std::vector<std::int64_t>& index) {
  std::string text = "[";
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(index[i]);
  }
  return text + "]";
}

// Where the tensor of a block is: the output of a node, or a graph input.
struct Source {
  bool is_input = false;
  std::int32_t index = 0;
};

// The blocks of a value, on a grid of parts.
struct Blocks {
  std::vector<std::int64_t> parts;  // along each axis
  std::vector<Source> sources;      // row-major over parts

  [[nodiscard]] std::size_t at(const std::vector<std::int64_t>& index) const {
    std::size_t flat = 0;
    for (std::size_t axis = 0; axis < parts.size(); ++axis) {
      flat = flat * static_cast<std::size_t>(parts[axis]) + static_cast<std::size_t>(index[axis]);
    }
    return flat;
  }
};

class Sharder {
 public:
  Sharder(const Program& program, const ShardingOptions& options)
      : program_(program),
        options_(options),
        builder_(program.name()),
        blocks_(program.values().size()),
        slice_meta_op_(program.values().size(), -1),
        concat_meta_op_(program.values().size(), -1) {}

  ShardedProgram run() {
    check_size();
    for (const Operation& operation : program_.operations()) shard_operation(operation);
    collect_results();
    sharded_.graph = builder_.build();
    return std::move(sharded_);
  }

 private:
  // Parts along each of an operation's dimensions: those of the result, then those reduced over.
  static Dimensions dimensions_of(const Operation& operation) {
    Dimensions all = operation.result_dimensions;
    all.insert(all.end(), operation.reduced.begin(), operation.reduced.end());
    return all;
  }

  [[nodiscard]] std::vector<std::int64_t> parts_of(const Dimensions& dimensions,
                                                   const Cut& cut) const {
    std::vector<std::int64_t> parts;
    for (DimensionId dimension : dimensions) parts.push_back(cut.parts(dimension));
    return parts;
  }

  [[noreturn]] void throw_too_large(const std::string& what, std::int64_t limit) const {
    throw UsageError(program_.name() + ": the sharded graph has more than " +
                     std::to_string(limit) + " " + what + "; choose fewer shards");
  }

  // Before anything large is made.
  void check_size() const {
    double n_nodes = 0;
    for (const Operation& operation : program_.operations()) {
      double blocks = 1;
      for (DimensionId dimension : dimensions_of(operation)) {
        blocks *= static_cast<double>(operation.cut.parts(dimension));
      }
      n_nodes += blocks;
    }
    if (n_nodes > static_cast<double>(kMaxNodes)) throw_too_large("nodes", kMaxNodes);
  }

  Box block_box(const Dimensions& dimensions, const std::vector<std::int64_t>& parts,
                const std::vector<std::int64_t>& index) const {
    Box box;
    for (std::size_t axis = 0; axis < dimensions.size(); ++axis) {
      box.push_back(part_range(program_.at(dimensions[axis]).size, parts[axis], index[axis]));
    }
    return box;
  }

  void shard_operation(const Operation& operation) {
    const Dimensions dimensions = dimensions_of(operation);
    const auto parts = parts_of(dimensions, operation.cut);
    const std::string rule(reduction_rule(operation.kind));
    std::int64_t n_partials = 1;
    for (std::size_t axis = operation.result_dimensions.size(); axis < parts.size(); ++axis) {
      n_partials *= parts[axis];
    }
    const bool aggregates = !rule.empty() && (n_partials > 1 || options_.aggregate_all);
    const std::string& name = program_.at(operation.result).name;
    const std::string block_name = aggregates ? name + "." + operation.kind : name;
    const std::string index_expression = expression(operation);
    for (const Operand& operand : operation.operands) make_input_blocks(operand, operation.cut);

    const std::int32_t meta_op = n_meta_ops_++;
    std::vector<Source> sources;
    for_each_index(parts, [&](const std::vector<std::int64_t>& index) {
      const Box box = block_box(dimensions, parts, index);
      const Box result(box.begin(), box.begin() + operation.result_dimensions.size());
      Node node;
      node.name = block_name + bracketed(index);
      node.kind = operation.kind;
      node.meta_op = meta_op;
      node.flops = flops_per_point(operation) * elements(box);
      NodeAttributes attributes;
      attributes.index = index_expression;
      attributes.factor = operation.factor;
      attributes.offset = operation.offset;
      attributes.top_k = operation.top_k;
      if (operation.kind == "fill") {
        attributes.rule = "causal";
        attributes.start = begins(result);
      }
      Reads reads;
      for (const Operand& operand : operation.operands) {
        attributes.operands.push_back(read(operand, dimensions, box, reads));
      }
      sources.push_back(add_node(std::move(node), result, operation.dtype, attributes, reads));
    });

    Blocks& blocks = blocks_[operation.result.index()];
    blocks.parts.assign(parts.begin(), parts.begin() + operation.result_dimensions.size());
    blocks.sources = aggregates ? aggregate(operation, rule, blocks.parts, sources, n_partials)
                                : std::move(sources);
  }

  // One aggregation a block of the result, over its partial blocks, which stand side by side.
  std::vector<Source> aggregate(const Operation& operation, const std::string& rule,
                                const std::vector<std::int64_t>& parts,
                                const std::vector<Source>& partials, std::int64_t n_partials) {
    const std::int32_t meta_op = n_meta_ops_++;
    const std::string labels = labels_of(operation.result_dimensions);
    std::vector<Source> sources;
    for_each_index(parts, [&](const std::vector<std::int64_t>& index) {
      const Box box = block_box(operation.result_dimensions, parts, index);
      Node node;
      node.name = program_.at(operation.result).name + bracketed(index);
      node.kind = "aggregate";
      node.meta_op = meta_op;
      node.flops = static_cast<double>(n_partials - 1) * elements(box);
      NodeAttributes attributes;
      attributes.rule = rule;
      Reads reads;
      const std::size_t first = sources.size() * static_cast<std::size_t>(n_partials);
      for (std::int64_t k = 0; k < n_partials; ++k) {
        attributes.index += (k > 0 ? ", " : "") + labels;
        OperandPiece piece;
        refer(partials[first + static_cast<std::size_t>(k)], piece, reads);
        piece.start.assign(box.size(), 0);
        piece.shape = extents(box);
        piece.to.assign(box.size(), 0);
        reads.bytes += elements(box) * size_of(operation.dtype);
        attributes.operands.push_back({extents(box), {std::move(piece)}});
      }
      attributes.index += " -> " + labels;
      sources.push_back(add_node(std::move(node), box, operation.dtype, attributes, reads));
    });
    return sources;
  }

  // What one node reads: edges and inputs in the order in which they are met, each once.
  struct Reads {
    std::vector<NodeId> producers;
    std::vector<InputId> inputs;
    double bytes = 0;
  };

  void refer(const Source& source, OperandPiece& piece, Reads& reads) const {
    if (source.is_input) {
      piece.source = OperandPiece::Source::input;
      piece.index = source.index;
      const InputId input(source.index);
      if (std::find(reads.inputs.begin(), reads.inputs.end(), input) == reads.inputs.end()) {
        reads.inputs.push_back(input);
      }
      return;
    }
    const NodeId producer(source.index);
    const auto found = std::find(reads.producers.begin(), reads.producers.end(), producer);
    piece.index = static_cast<std::int32_t>(found - reads.producers.begin());
    if (found == reads.producers.end()) reads.producers.push_back(producer);
  }

  Source add_node(Node node, const Box& box, DType dtype, const NodeAttributes& attributes,
                  const Reads& reads) {
    const double bytes = elements(box) * size_of(dtype);
    node.bytes_read = reads.bytes;
    node.bytes_written = bytes;
    node.outputs = {{bytes, extents(box), dtype}};
    node.attributes = to_json(attributes);
    if (static_cast<std::int64_t>(builder_.n_nodes()) >= kMaxNodes) {
      throw_too_large("nodes", kMaxNodes);
    }
    n_edges_ += static_cast<std::int64_t>(reads.producers.size());
    if (n_edges_ > kMaxEdges) throw_too_large("edges", kMaxEdges);
    const NodeId id = builder_.add_node(node);
    for (NodeId producer : reads.producers) builder_.add_edge(producer, id);
    for (InputId input : reads.inputs) builder_.add_reader(input, id);
    return {false, id.value};
  }

  // The operand of a node whose block of the operation's dimensions is `box`.
  NodeOperand read(const Operand& operand, const Dimensions& dimensions, const Box& box,
                   Reads& reads) {
    Box region;
    for (std::size_t axis = 0; axis < operand.labels.size(); ++axis) {
      const auto label = std::find(dimensions.begin(), dimensions.end(), operand.labels[axis]);
      const Range range = box[static_cast<std::size_t>(label - dimensions.begin())];
      const std::int64_t offset = operand.offset.empty() ? 0 : operand.offset[axis];
      region.push_back({range.begin + offset, range.end + offset});
    }
    reads.bytes += elements(region) * size_of(program_.at(operand.value).dtype);
    if (options_.slices) return {extents(region), {whole(operand.value, region, reads)}};
    return {extents(region), pieces(operand.value, region, reads)};
  }

  // The overlaps of a region of a value with the blocks of that value.
  std::vector<OperandPiece> pieces(ValueId value, const Box& region, Reads& reads) const {
    std::vector<OperandPiece> result;
    for_each_overlap(value, region,
                     [&](const Source& source, const Box& block, const Box& overlap) {
                       OperandPiece piece;
                       refer(source, piece, reads);
                       for (std::size_t axis = 0; axis < region.size(); ++axis) {
                         piece.start.push_back(overlap[axis].begin - block[axis].begin);
                         piece.to.push_back(overlap[axis].begin - region[axis].begin);
                       }
                       piece.shape = extents(overlap);
                       result.push_back(std::move(piece));
                     });
    return result;
  }

  template <class Visit>
  void for_each_overlap(ValueId value, const Box& region, Visit visit) const {
    const Blocks& blocks = blocks_[value.index()];
    const Dimensions& dimensions = program_.at(value).dimensions;
    std::vector<std::int64_t> first;
    std::vector<std::int64_t> counts;
    for (std::size_t axis = 0; axis < region.size(); ++axis) {
      const std::int64_t size = program_.at(dimensions[axis]).size;
      first.push_back(part_of(size, blocks.parts[axis], region[axis].begin));
      counts.push_back(part_of(size, blocks.parts[axis], region[axis].end - 1) - first[axis] + 1);
    }
    for_each_index(counts, [&](std::vector<std::int64_t> index) {
      for (std::size_t axis = 0; axis < index.size(); ++axis) index[axis] += first[axis];
      const Box block = block_box(dimensions, blocks.parts, index);
      Box overlap;
      for (std::size_t axis = 0; axis < block.size(); ++axis) {
        overlap.push_back({std::max(block[axis].begin, region[axis].begin),
                           std::min(block[axis].end, region[axis].end)});
      }
      visit(blocks.sources[blocks.at(index)], block, overlap);
    });
  }

  // A piece that is a whole tensor: the block itself, or a slice or concatenation made for it.
  OperandPiece whole(ValueId value, const Box& region, Reads& reads) {
    const auto key = std::make_pair(value, begins(region));
    const auto found = regions_.find({key, extents(region)});
    const Source source = found != regions_.end()
                              ? found->second
                              : regions_[{key, extents(region)}] = make_region(value, region);
    OperandPiece piece;
    refer(source, piece, reads);
    piece.start.assign(region.size(), 0);
    piece.to.assign(region.size(), 0);
    piece.shape = extents(region);
    return piece;
  }

  Source make_region(ValueId value, const Box& region) {
    std::vector<Source> sliced;
    std::vector<Box> overlaps;
    for_each_overlap(
        value, region, [&](const Source& source, const Box& block, const Box& overlap) {
          overlaps.push_back(overlap);
          sliced.push_back(block == overlap ? source : make_slice(value, source, block, overlap));
        });
    if (sliced.size() == 1) return sliced.front();
    Reads reads;
    NodeOperand operand{extents(region), {}};
    for (std::size_t i = 0; i < sliced.size(); ++i) {
      OperandPiece piece;
      refer(sliced[i], piece, reads);
      piece.start.assign(region.size(), 0);
      piece.shape = extents(overlaps[i]);
      for (std::size_t axis = 0; axis < region.size(); ++axis) {
        piece.to.push_back(overlaps[i][axis].begin - region[axis].begin);
      }
      operand.pieces.push_back(std::move(piece));
    }
    return add_copy("concat", concat_meta_op_, value, region, std::move(operand), reads);
  }

  Source make_slice(ValueId value, const Source& source, const Box& block, const Box& overlap) {
    const auto key = std::make_pair(value, begins(overlap));
    const auto found = slices_.find({key, extents(overlap)});
    if (found != slices_.end()) return found->second;
    Reads reads;
    OperandPiece piece;
    refer(source, piece, reads);
    for (std::size_t axis = 0; axis < block.size(); ++axis) {
      piece.start.push_back(overlap[axis].begin - block[axis].begin);
    }
    piece.shape = extents(overlap);
    piece.to.assign(block.size(), 0);
    NodeOperand operand{extents(overlap), {std::move(piece)}};
    return slices_[{key, extents(overlap)}] =
               add_copy("slice", slice_meta_op_, value, overlap, std::move(operand), reads);
  }

  Source add_copy(const std::string& kind, std::vector<std::int32_t>& meta_ops, ValueId value,
                  const Box& box, NodeOperand operand, Reads& reads) {
    std::int32_t& meta_op = meta_ops[value.index()];
    if (meta_op < 0) meta_op = n_meta_ops_++;
    const DType dtype = program_.at(value).dtype;
    reads.bytes = elements(box) * size_of(dtype);
    Node node;
    node.name = program_.at(value).name + "." + kind + bracketed(begins(box));
    node.kind = kind;
    node.meta_op = meta_op;
    const std::string labels = labels_of(program_.at(value).dimensions);
    NodeAttributes attributes;
    attributes.index = labels + " -> " + labels;
    attributes.operands.push_back(std::move(operand));
    return add_node(std::move(node), box, dtype, attributes, reads);
  }

  // An input is cut as its first reader reads it: whole along an axis of which that takes a part.
  void make_input_blocks(const Operand& operand, const Cut& cut) {
    const Value& value = program_.at(operand.value);
    Blocks& blocks = blocks_[operand.value.index()];
    if (value.producer >= 0 || !blocks.sources.empty()) return;
    for (std::size_t axis = 0; axis < operand.labels.size(); ++axis) {
      const DimensionId label = operand.labels[axis];
      const bool same_size = program_.at(label).size == program_.at(value.dimensions[axis]).size;
      blocks.parts.push_back(same_size ? cut.parts(label) : 1);
    }
    for_each_index(blocks.parts, [&](const std::vector<std::int64_t>& index) {
      const Box box = block_box(value.dimensions, blocks.parts, index);
      GraphInput input;
      input.name = value.name + bracketed(index);
      input.tensor = {elements(box) * size_of(value.dtype), extents(box), value.dtype};
      blocks.sources.push_back({true, builder_.add_input(std::move(input)).value});
      sharded_.inputs.push_back({operand.value, box});
    });
  }

  void collect_results() {
    for (ValueId value : program_.results()) {
      if (program_.at(value).producer < 0) continue;
      const Blocks& blocks = blocks_[value.index()];
      for_each_index(blocks.parts, [&](const std::vector<std::int64_t>& index) {
        const Source& source = blocks.sources[blocks.at(index)];
        const Box box = block_box(program_.at(value).dimensions, blocks.parts, index);
        sharded_.results.push_back({NodeId(source.index), {value, box}});
      });
    }
  }

  [[nodiscard]] std::string labels_of(const Dimensions& dimensions) const {
    std::string text;
    for (DimensionId dimension : dimensions) {
      text += (text.empty() ? "" : " ") + program_.at(dimension).name;
    }
    return text;
  }

  [[nodiscard]] std::string expression(const Operation& operation) const {
    std::string text;
    for (std::size_t i = 0; i < operation.operands.size(); ++i) {
      text += (i > 0 ? ", " : "") + labels_of(operation.operands[i].labels);
    }
    return text + " -> " + labels_of(operation.result_dimensions);
  }

  using RegionKey =
      std::pair<std::pair<ValueId, std::vector<std::int64_t>>, std::vector<std::int64_t>>;

  const Program& program_;
  ShardingOptions options_;
  GraphBuilder builder_;
  ShardedProgram sharded_;
  std::vector<Blocks> blocks_;  // of each value
  std::vector<std::int32_t> slice_meta_op_;
  std::vector<std::int32_t> concat_meta_op_;
  std::map<RegionKey, Source> regions_;
  std::map<RegionKey, Source> slices_;
  std::int32_t n_meta_ops_ = 0;
  std::int64_t n_edges_ = 0;
};

}  // namespace

ShardedProgram shard(const Program& program, const ShardingOptions& options) {
  return Sharder(program, options).run();
}

std::int64_t max_sharded_nodes() { return kMaxNodes; }

}  // namespace doppler
