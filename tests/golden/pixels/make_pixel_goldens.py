"""Cuts the pixel goldens out of what the real FFCV decoded (usage: make_pixel_goldens.py FOLDER_OF_NPZ).

FOLDER_OF_NPZ holds NAME.npz beside the NAME.beton files of ../beton, made by FFCV 1.0.2 with OpenCV 4.6.0 and TurboJPEG
2.1.5: windows_96 = resize_crop of `windows` rows (sample, row0, row1, column0, column1); center_64_r0875 =
CenterCropRGBImageDecoder((64, 64), 0.875).
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
