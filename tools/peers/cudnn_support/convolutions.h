// The graphs of one convolution, plain and fused with its neighbours.
#pragma once

#include "graphs.h"

namespace cudnn_graphs {

/// Builds a convolution. @param scaled_input whether scale, bias and ReLU, which are the batch norm
/// of the preceding layer, are applied to the input first. @param sums whether to compute the sums
/// for the next batch norm
inline void forward(Net& net, const Convolution& of, bool scaled_input, bool sums) {
  Tensor x = net.images(of.in, of.size);
  if (scaled_input) x = net.relu(net.scale_bias(x, of.in, net.type()));
  const Tensor y = net.convolution(x, net.filter(of), of.filter / 2, of.stride);
  if (sums) net.statistics(y);
}

/// Builds the gradient of a convolution's input. @param fused whether ReLU's gradient and the sums
/// for the gradient of batch norm follow
inline void data_gradient(Net& net, const Convolution& of, bool fused) {
  const Tensor gradient = net.images(of.out, of.output_size());
  const Tensor dx =
      net->conv_dgrad(gradient, net.filter(of), Net::convolved<graph::Conv_dgrad_attributes>(of));
  if (!fused) {
    net.output(dx)->set_dim({gradient->get_dim().front(), of.in, of.size, of.size});
    return;
  }
  const Tensor x = net.images(of.in, of.size);
  dx->set_dim(x->get_dim());
  const Tensor mean = net.channels(of.in), inv_std = net.channels(of.in);
  const Tensor scale = net.channels(of.in), bias = net.channels(of.in);
  const Tensor normalized = net.apply(Mode::MUL, net.apply(Mode::SUB, x, mean), inv_std);
  const Tensor y = net.apply(Mode::ADD, net.apply(Mode::MUL, normalized, scale), bias);
  const Tensor dy = net.output(net.apply(Mode::RELU_BWD, dx, y));
  const auto sums = net->dbn_weight(dy, x, mean, inv_std, scale, graph::DBN_weight_attributes());
  net.floats({sums.begin(), sums.end()});
  net.set_sums({dy, sums[1], nullptr});
}

/// Builds the gradient of a convolution's filter. @param fused whether scale, bias and ReLU are
/// applied to the input first, so that the activation need not be stored
inline void weight_gradient(Net& net, const Convolution& of, bool fused) {
  Tensor x = net.images(of.in, of.size);
  if (fused) x = net.relu(net.scale_bias(x, of.in, net.type()));
  const Tensor dw = net->conv_wgrad(net.images(of.out, of.output_size()), x,
                                    Net::convolved<graph::Conv_wgrad_attributes>(of));
  net.output(dw)->set_dim({of.out, of.in, of.filter, of.filter});
}

}  // namespace cudnn_graphs
