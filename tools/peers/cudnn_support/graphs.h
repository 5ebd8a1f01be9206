// cuDNN graphs in one precision, for cudnn_support and cudnn_times. Tensors are channels_last.
// Not thread-safe; different threads may use different Nets.
#pragma once

#include <cudnn_frontend.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace cudnn_graphs {

namespace fe = cudnn_frontend;
namespace graph = cudnn_frontend::graph;
using Type = fe::DataType_t;
using Tensor = std::shared_ptr<graph::Tensor_attributes>;
using Mode = fe::PointwiseMode_t;
using Device = std::shared_ptr<fe::DeviceProperties>;

constexpr int kExitFailed = 1, kExitUsage = 2, kExitEnvironment = 6;

inline void check(fe::error_t error, const std::string& what) {
  if (error.is_bad()) throw std::runtime_error(what + ": " + error.get_message());
}

inline Device read_device(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("expected a device description, cannot read " + path);
  const std::vector<std::uint8_t> json{std::istreambuf_iterator<char>(file), {}};
  auto device = std::make_shared<fe::DeviceProperties>();
  check(device->deserialize(json), "expected a device description as cuDNN writes it, got " + path);
  return device;
}

/// A convolution without bias; its padding is filter / 2. `size` is the side of its input in px.
struct Convolution {
  std::int64_t in, out, filter, stride, size;
  std::int64_t output_size() const { return (size + stride - 1) / stride; }
};

/// A tensor that the caller of a graph fills, with values in [-magnitude, magnitude].
struct Input {
  Tensor tensor;
  float magnitude;
};

/// `sum` and `squares` are outputs with the channels' sums, and sums of squares, of the output
/// `of`. `squares` is null if the graph does not compute it.
struct Sums {
  Tensor of, sum, squares;
};

/// Builds a graph in one precision.
class Net {
 public:
  /// @param device null if the graph will be built with a cuDNN handle
  Net(const Device& device, std::int64_t batch, Type type, Type intermediate = Type::FLOAT)
      : batch_(batch), type_(type) {
    graph_.set_io_data_type(type).set_intermediate_data_type(intermediate);
    graph_.set_compute_data_type(Type::FLOAT).set_device_properties(device);
  }
  graph::Graph& operator*() { return graph_; }
  graph::Graph* operator->() { return &graph_; }
  Type type() const { return type_; }
  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }
  /// Its tensors are null if the graph computes no sums.
  const Sums& sums() const { return sums_; }
  void set_sums(const Sums& sums) { sums_ = sums; }

  /// [batch, channels, size, size]
  Tensor images(std::int64_t channels, std::int64_t size) {
    return tensor({batch_, channels, size, size}, type_);
  }
  Tensor mask(std::int64_t channels, std::int64_t size) {
    return tensor({batch_, channels, size, size}, Type::BOOLEAN);
  }
  /// [out, in, size, size]
  Tensor filter(std::int64_t out, std::int64_t in, std::int64_t size) {
    const float fan_in = static_cast<float>(in * size * size);
    return tensor({out, in, size, size}, type_, 1.0f / std::sqrt(fan_in));
  }
  Tensor filter(const Convolution& of) { return filter(of.out, of.in, of.filter); }
  /// One value per channel.
  Tensor channels(std::int64_t count, Type type = Type::FLOAT) {
    return tensor({1, count, 1, 1}, type);
  }
  Tensor apply(Mode mode, const Tensor& a, const Tensor& b) {
    return graph_.pointwise(a, b, graph::Pointwise_attributes().set_mode(mode));
  }
  Tensor relu(const Tensor& x) {
    return graph_.pointwise(x, graph::Pointwise_attributes().set_mode(Mode::RELU_FWD));
  }
  /// x * scale + bias
  Tensor scale_bias(const Tensor& x, std::int64_t count, Type type) {
    return apply(Mode::ADD, apply(Mode::MUL, x, channels(count, type)), channels(count, type));
  }
  Tensor convolution(const Tensor& x, const Tensor& weights, std::int64_t pad,
                     std::int64_t stride) {
    return output(
        graph_.conv_fprop(x, weights, convolved<graph::Conv_fprop_attributes>(pad, stride)));
  }
  template <typename Attributes>
  static Attributes convolved(std::int64_t pad, std::int64_t stride) {
    return Attributes().set_padding({pad, pad}).set_stride({stride, stride}).set_dilation({1, 1});
  }
  template <typename Attributes>
  static Attributes convolved(const Convolution& of) {
    return convolved<Attributes>(of.filter / 2, of.stride);
  }
  /// Sum and sum of squares of each channel.
  void statistics(const Tensor& y) {
    const auto [sum, squares] = graph_.genstats(y, graph::Genstats_attributes());
    floats({sum, squares});
    set_sums({y, sum, squares});
  }
  /// Marks a tensor as an output in the graph's precision.
  Tensor output(const Tensor& tensor) {
    tensor->set_output(true);
    outputs_.push_back(tensor);
    return tensor;
  }
  /// Marks tensors as float32 outputs.
  void floats(const std::vector<Tensor>& outputs) {
    for (const Tensor& tensor : outputs) output(tensor)->set_data_type(Type::FLOAT);
  }

 private:
  Tensor tensor(const std::array<std::int64_t, 4>& shape, Type type, float magnitude = 1.0f) {
    const auto [n, c, h, w] = shape;
    const Tensor made = graph_.tensor(graph::Tensor_attributes()
                                          .set_name("t" + std::to_string(inputs_.size()))
                                          .set_dim({n, c, h, w})
                                          .set_stride({c * h * w, 1, c * w, c})
                                          .set_data_type(type));
    inputs_.push_back({made, magnitude});
    return made;
  }

  graph::Graph graph_;
  std::int64_t batch_;
  Type type_;
  std::vector<Input> inputs_;
  std::vector<Tensor> outputs_;
  Sums sums_;
};

/// Asks cuDNN for engines for the graph. @return the reason if there is none, otherwise an empty
/// string. @param handle null if the graph has a device description
inline std::string refusal(graph::Graph& of, cudnnHandle_t handle = nullptr) {
  fe::error_t result = of.validate();
  if (result.is_good()) {
    result = handle ? of.build_operation_graph(handle) : of.build_operation_graph();
  }
  if (result.is_good()) {
    result = of.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
  }
  if (result.is_bad()) return result.get_message();
  return of.get_execution_plan_count() > 0 ? "" : "no engine";
}

}  // namespace cudnn_graphs
