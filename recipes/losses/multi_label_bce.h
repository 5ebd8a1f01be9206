#pragma once

#include <memory>

#include "framework/api/loss.h"

namespace precast::recipes {

struct MultiLabelBceOptions {
  /// Above 0: factor for the loss of positive targets, the same for all classes (torch accepts one
  /// for each class). Useful for rare labels.
  double pos_weight = 1;

  void options(Schema& schema);
};

/// Mean binary cross entropy of logits [N, classes] and targets [N, classes], which are 0 and 1 or
/// probabilities, of any dtype, like torch.nn.BCEWithLogitsLoss(pos_weight=w): each class is a
/// separate decision. Computed in float32 whatever the dtype of the logits. Calls throw
/// std::logic_error for other shapes.
[[nodiscard]] std::unique_ptr<Loss> make_multi_label_bce(const MultiLabelBceOptions& options);

}  // namespace precast::recipes
