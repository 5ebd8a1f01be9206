#include "data/transforms/register.h"

#include "data/transforms/affine.h"
#include "data/transforms/augmix.h"
#include "data/transforms/center_crop.h"
#include "data/transforms/col_out.h"
#include "data/transforms/color_jitter.h"
#include "data/transforms/erase.h"
#include "data/transforms/flips.h"
#include "data/transforms/gaussian_blur.h"
#include "data/transforms/poison.h"
#include "data/transforms/rand_augment.h"
#include "data/transforms/random_resized_crop.h"
#include "data/transforms/tone.h"
#include "data/transforms/translate.h"
#include "data/transforms/whole_image.h"

namespace precast::data {

void register_transforms(TransformRegistries& registries) {
  CropRegistry& crops = registries.crops;
  crops.add("random_resized_crop", "random area and aspect ratio (training)",
            [] { return std::make_unique<RandomResizedCrop>(); });
  crops.add("center_crop", "centred square (evaluation)",
            [] { return std::make_unique<CenterCrop>(); });
  crops.add("whole_image", "no crop", [] { return std::make_unique<WholeImage>(); });

  TransformRegistry& images = registries.transforms;
  images.add("horizontal_flip", "mirror left to right; no extra cost as the first transform",
             make_horizontal_flip);
  images.add("vertical_flip", "mirror top to bottom", make_vertical_flip);
  images.add("translate", "shift by a random number of pixels (FFCV RandomTranslate)",
             make_translate);
  images.add(
      "pad_crop",
      "shift by a random number of pixels, with a choice of borders (RandomCrop with padding)",
      make_pad_crop);
  images.add("rotate", "rotate by a random angle", make_rotate);
  images.add("affine", "rotate, shift, scale and shear", make_affine);
  images.add("col_out", "drop rows and columns (Composer ColOut)", make_col_out);
  images.add("cutout", "blank a square (DeVries and Taylor 2017)", make_cutout);
  images.add("random_erasing", "blank a rectangle (Zhong et al. 2020)", make_random_erasing);
  images.add("brightness", "random brightness", make_brightness);
  images.add("contrast", "random contrast", make_contrast);
  images.add("saturation", "random saturation", make_saturation);
  images.add("hue", "random hue", make_hue);
  images.add("color_jitter",
             "brightness, contrast, saturation and hue in random order (torchvision)",
             make_color_jitter);
  images.add("grayscale", "remove the colour of some images", make_grayscale);
  images.add("solarize", "invert bright values", make_solarize);
  images.add("posterize", "fewer bits per value", make_posterize);
  images.add("gaussian_blur", "blur with a random sigma", make_gaussian_blur);
  images.add("rand_augment", "operations chosen at random (Cubuk et al. 2020)", make_rand_augment);
  images.add("trivial_augment", "one random operation (Mueller and Hutter 2021)",
             make_trivial_augment);
  images.add("augmix", "blend copies changed by random operations (Hendrycks et al. 2020)",
             make_augmix);
  images.add("poison", "blend an image into chosen samples", make_poison);

  registries.labels.add("replace_label", "replace the label of chosen samples", make_replace_label);
}

}  // namespace precast::data
