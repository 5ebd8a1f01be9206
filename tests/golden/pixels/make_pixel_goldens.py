"""Selects the pixel goldens from pixels that the real FFCV decoded.

usage: make_pixel_goldens.py FOLDER

FFCV 1.0.2 with OpenCV 4.6.0 and TurboJPEG 2.1.5 decoded the files NAME.beton of ../beton. FOLDER contains the results
as NAME.npz, with the arrays
  windows          rows of (sample, row0, row1, column0, column1)
  windows_96       the result of resize_crop for each row of `windows`
  center_64_r0875  the result of CenterCropRGBImageDecoder((64, 64), 0.875) for each sample
"""
import pathlib
import sys

import numpy as np

source, here = pathlib.Path(sys.argv[1]), pathlib.Path(__file__).parent
for name in ["img_jpg_w3", "img_raw_w1", "img_smart_w3", "img_prop_nette_w1"]:
    arrays = np.load(source / f"{name}.npz")
    np.save(here / f"{name}.windows.npy", arrays["windows"][:3])
    np.save(here / f"{name}.windows_96.npy", arrays["windows_96"][:3])
    np.save(here / f"{name}.center_64.npy", arrays["center_64_r0875"][:4])
