#include "data/transforms/transform.h"

namespace precast::data {

Transform::~Transform() = default;
LabelTransform::~LabelTransform() = default;

}  // namespace precast::data
