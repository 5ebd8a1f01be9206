#!/usr/bin/env bash
# usage: sandbox.sh SOURCE_FOLDER BUILD_FOLDER DOCUMENT
# Creates, in the current folder, small versions of the files that the commands of the documents read. Weights and runs
# are created only if DOCUMENT mentions them.
set -euo pipefail
source_folder=$1 build_folder=$2 document=$1/$3
PATH=$build_folder/bin:$PATH
ln -s "$source_folder/configs" configs
mkdir docs datasets

# Photographs from a file that FFCV wrote, in two classes: as a folder tree, and as ImageNet's tars
# (training: a tar of tars; validation: images and a list of labels).
gunzip -c "$source_folder/tests/golden/beton/img_prop_nette_w1.beton.gz" >photographs.beton
mkdir -p IMAGENET/{train,val}/{cat,dog} imagenet tars
for i in 0 1 2 3 4 5 6 7; do
  kind=cat class=n01440764
  if ((i % 2)); then kind=dog class=n01443537; fi
  precast inspect photographs.beton --sample $i --output "IMAGENET/train/$kind/$i.jpg" >/dev/null
  cp "IMAGENET/train/$kind/$i.jpg" "tars/${class}_$i.JPEG"
done
cp IMAGENET/train/cat/[02].jpg IMAGENET/val/cat/
cp IMAGENET/train/dog/[13].jpg IMAGENET/val/dog/
cp -r IMAGENET/train IMAGENET/val imagenet/
cp -r IMAGENET/val photos
for class in n01440764 n01443537; do (cd tars && tar -cf $class.tar ${class}_*.JPEG); done
tar -cf ILSVRC2012_img_train.tar -C tars n01440764.tar n01443537.tar
cp IMAGENET/train/cat/0.jpg tars/ILSVRC2012_val_00000001.JPEG
cp IMAGENET/train/dog/1.jpg tars/ILSVRC2012_val_00000002.JPEG
tar -cf ILSVRC2012_img_val.tar -C tars ILSVRC2012_val_00000001.JPEG ILSVRC2012_val_00000002.JPEG
cat >LOC_val_solution.csv <<'END'
ImageId,PredictionString
ILSVRC2012_val_00000001,n01440764 1 2 3 4
ILSVRC2012_val_00000002,n01443537 1 2 3 4 n01443537 5 6 7 8
END

# Noise in the formats of Fashion-MNIST (IDX, ten classes) and CIFAR-10.
noise() { yes photographs.beton | head -n 100 | xargs cat | head -c "$1" || true; }
for part in train:10000 t10k:1500; do
  name=${part%:*} n=${part#*:}
  size=$(printf '\\0\\0\\x%02x\\x%02x' $((n / 256)) $((n % 256)))
  { printf '\0\0\x08\x03%b\0\0\0\x1c\0\0\0\x1c' "$size" && noise $((n * 784)); } | gzip -1 >"$name-images-idx3-ubyte.gz"
  { printf '\0\0\x08\x01%b' "$size" && for ((i = 0; i < n; i += 10)); do printf '\0\1\2\3\4\5\6\7\x08\x09'; done; } | gzip -1 >"$name-labels-idx1-ubyte.gz"
done
mkdir cifar-10-batches-bin datasets/fashion-mnist
for name in data_batch_{1,2,3,4,5} test_batch; do
  for label in 0 1 2 3; do printf '%b' "\\x0$label" && head -c 3072 photographs.beton; done >"cifar-10-batches-bin/$name.bin"
done
precast write train-images-idx3-ubyte.gz datasets/fashion-mnist/train.beton --image.mode raw >/dev/null
precast write t10k-images-idx3-ubyte.gz datasets/fashion-mnist/val.beton --image.mode raw >/dev/null

mkdir datasets/{cifar10,imagenette}
# The datasets of R.yaml have a separate folder, to which no document writes.
mkdir datasets/r
for split in train val; do
  precast write IMAGENET/$split $split.beton >/dev/null
  for folder in cifar10 imagenette r; do cp $split.beton datasets/$folder/$split.beton; done
done
cp train.beton FILE.beton && cp train.beton FILE
cat >R.yaml <<'END'
data: {train_dataset: datasets/r/train.beton, val_dataset: datasets/r/val.beton, num_workers: 1}
model: {arch: resnet18}
resolution: {min_res: 32, max_res: 32}
validation: {resolution: 32, batch_size: 4}
lr: {lr: 0.001}
training: {epochs: 1, batch_size: 4}
END
for name in C.yaml rn18.yaml recipe.yaml probe.yaml RECIPE.yaml RECIPE; do cp R.yaml $name; done
printf 'recipe: R.yaml\naxes: {lr.lr: [0.001, 0.002]}\n' >SWEEP.yaml
sed -n 's/^rn50_16/rn18_16/p; /^row,/p' "$source_folder/configs/imagenet/published_curves.csv" >curves.csv
printf 'title: T\ntrain_images: 8\nsources: []\nrows: [{id: a, model: ResNet-18, recipe: R.yaml}]\n' >TABLE.yaml
grep -qE 'weights|runs|\.pth?\b' "$document" || exit 0
precast train R.yaml --logging.run_id=a >/dev/null
cp -r runs/a runs/b
cp runs/a/final_weights.* .
for name in imagenet.pt weights.pt W.pth; do cp final_weights.pt $name; done
