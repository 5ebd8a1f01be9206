#include "recipes/register.h"

#include "recipes/losses/bce.h"
#include "recipes/losses/cross_entropy.h"
#include "recipes/losses/multi_label_bce.h"
#include "recipes/losses/pixel_cross_entropy.h"
#include "recipes/losses/value_losses.h"
#include "recipes/methods/adaptive_gradient_clipping.h"
#include "recipes/methods/batch_resize.h"
#include "recipes/methods/bce_loss.h"
#include "recipes/methods/blurpool.h"
#include "recipes/methods/channels_last.h"
#include "recipes/methods/cutmix.h"
#include "recipes/methods/ema.h"
#include "recipes/methods/ghost_batch_norm.h"
#include "recipes/methods/gradient_clipping.h"
#include "recipes/methods/label_smoothing.h"
#include "recipes/methods/layer_freezing.h"
#include "recipes/methods/mixup.h"
#include "recipes/methods/mixup_or_cutmix.h"
#include "recipes/methods/progressive_resize.h"
#include "recipes/methods/sam.h"
#include "recipes/methods/scale_schedule.h"
#include "recipes/methods/selective_backprop.h"
#include "recipes/methods/squeeze_excite.h"
#include "recipes/methods/stochastic_depth.h"
#include "recipes/methods/swa.h"
#include "recipes/methods/zero_init_residual.h"
#include "recipes/metrics/f1.h"
#include "recipes/metrics/map.h"
#include "recipes/metrics/mean_iou.h"
#include "recipes/metrics/per_class_accuracy.h"
#include "recipes/metrics/top_k.h"
#include "recipes/metrics/value_metrics.h"
#include "recipes/optim/adamw.h"
#include "recipes/optim/lamb.h"
#include "recipes/optim/lars.h"
#include "recipes/optim/sgd.h"
#include "recipes/optim/sgdw.h"
#include "recipes/schedules/constant.h"
#include "recipes/schedules/cosine.h"
#include "recipes/schedules/cyclic.h"
#include "recipes/schedules/one_cycle.h"
#include "recipes/schedules/poly.h"
#include "recipes/schedules/step.h"

namespace precast::recipes {

void register_metrics(MetricRegistry& registry) {
  registry.add("top_k", "fraction of samples whose class is among the k largest logits",
               make_top_k);
  registry.add("per_class_accuracy",
               "fraction of samples that are classified correctly, averaged over the classes",
               make_per_class_accuracy);
  registry.add("f1", "harmonic mean of precision and recall", make_f1);
  registry.add("map", "mean average precision, for several labels per sample", make_map);
  registry.add("mean_iou", "intersection over union of masks, averaged over the classes",
               make_mean_iou);
  registry.add("mse", "mean squared error", make_mse_metric);
  registry.add("r2", "coefficient of determination: fraction of the variance that is explained",
               make_r2);
}

void register_methods(MethodRegistry& registry) {
  registry.add("blurpool", "antialias strided convolutions (Zhang 2019)", make_blurpool);
  registry.add("label_smoothing", "spread some probability over all classes (Szegedy et al. 2016)",
               make_label_smoothing);
  registry.add("progressive_resize", "train on small images first (Howard 2018, FFCV)",
               make_progressive_resize);
  registry.add("channels_last", "store images and weights channels last", make_channels_last);
  registry.add("gradient_clipping", "bound the norm of the gradient (Pascanu et al. 2013)",
               make_gradient_clipping);
  registry.add(
      "adaptive_gradient_clipping",
      "bound the gradient of each output channel relative to its weights (Brock et al. 2021)",
      make_adaptive_gradient_clipping);
  registry.add("ghost_batch_norm",
               "compute batch statistics over smaller groups of samples (Hoffer et al. 2017)",
               make_ghost_batch_norm);
  registry.add("mixup",
               "mix each image and label with those of the preceding sample (Zhang et al. 2018)",
               make_mixup);
  registry.add("cutmix",
               "replace a box of each image with the same box of the preceding image "
               "(Yun et al. 2019)",
               make_cutmix);
  registry.add("mixup_or_cutmix", "mixup or cutmix, chosen for each batch (timm, torchvision)",
               make_mixup_or_cutmix);
  registry.add("ema", "evaluate a moving average of the weights (Polyak & Juditsky 1992)",
               make_ema);
  registry.add("swa", "evaluate the mean of the weights of late epochs (Izmailov et al. 2018)",
               make_swa);
  registry.add("squeeze_excite",
               "scale channels by weights computed from their means (Hu et al. 2018)",
               make_squeeze_excite);
  registry.add("stochastic_depth", "drop residual branches at random (Huang et al. 2016)",
               make_stochastic_depth);
  registry.add("zero_init_residual", "residual blocks start as the identity (Goyal et al. 2017)",
               make_zero_init_residual);
  registry.add("bce_loss",
               "train one decision per class instead of a softmax (Wightman et al. 2021)",
               make_bce_loss);
  registry.add("layer_freezing", "freeze early layers late in a run (Brock et al. 2017)",
               make_layer_freezing);
  registry.add("batch_resize",
               "make images smaller on the device, early in training (Howard 2018, Composer)",
               make_batch_resize);
  registry.add("scale_schedule", "run the recipe in fewer or more epochs (Composer)",
               make_scale_schedule);
  registry.add("sam", "sharpness-aware minimisation: two gradients per step (Foret et al. 2021)",
               make_sam);
  registry.add("selective_backprop", "train mainly on samples with high losses (Jiang et al. 2019)",
               make_selective_backprop);
}

void register_losses(LossRegistry& registry) {
  registry.add("cross_entropy", "mean cross entropy; targets are class indices or probabilities",
               make_cross_entropy);
  registry.add("bce", "mean binary cross entropy: one decision per class", make_bce);
  registry.add("multi_label_bce", "mean binary cross entropy with several labels per sample",
               make_multi_label_bce);
  registry.add("pixel_cross_entropy", "cross entropy of the class of each pixel",
               make_pixel_cross_entropy);
  registry.add("mse", "mean squared error", make_mse);
  registry.add("l1", "mean absolute error", make_l1);
  registry.add("huber", "squared error if it is small, absolute error if it is large (Huber 1964)",
               make_huber);
}

void register_optimizers(OptimizerRegistry& registry) {
  registry.add("sgd", "stochastic gradient descent with momentum", make_sgd);
  registry.add("sgdw", "sgd with decoupled weight decay (Loshchilov & Hutter 2019)", make_sgdw);
  registry.add("adamw", "adaptive moments with decoupled decay (Loshchilov & Hutter 2019)",
               make_adamw);
  registry.add("lars", "sgd with layer-wise rates, for large batches (You et al. 2017)", make_lars);
  registry.add("lamb", "adamw with layer-wise rates, for large batches (You et al. 2020)",
               make_lamb);
}

void register_schedules(ScheduleRegistry& registry) {
  registry.add("cyclic", "linear up to the peak, linear down to 0", make_cyclic);
  registry.add("step", "rate multiplied by step_ratio every step_length epochs", make_step);
  registry.add("cosine", "warm-up, then half a cosine to final_lr", make_cosine);
  registry.add("poly", "warm-up, then lr * (1 - progress)^power, down to 0", make_poly);
  registry.add("one_cycle", "half a cosine up to the peak, half a cosine down", make_one_cycle);
  registry.add("constant", "warm-up, then constant at lr", make_constant);
}

}  // namespace precast::recipes
