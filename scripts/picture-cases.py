"""Writes small pictures of each kind with Pillow, and beside each its pixels as convert("RGB") has them.

usage: picture-cases.py FOLDER
"""

import sys

import numpy as np
from PIL import Image


def main(folder):
    y, x = np.mgrid[0:11, 0:13]
    colours = np.stack([x * 19, y * 23, 255 - x * 9 - y * 11], -1).astype("u1")
    plain = Image.fromarray(colours)
    clear = Image.fromarray(np.dstack([colours, (x * 40 % 256).astype("u1")]))

    def put(name, image, **options):
        image.save(f"{folder}/{name}", **options)
        np.asarray(Image.open(f"{folder}/{name}").convert("RGB")).tofile(f"{folder}/{name}.rgb")

    for ratio, name in enumerate(("444", "422", "420")):
        put(name + ".jpg", plain, quality=92, subsampling=ratio)
    put("gray.jpg", plain.convert("L"))
    put("lossy.webp", clear, quality=80)
    put("lossless.webp", clear, lossless=True, exact=True)
    put("clear.png", clear)
    put("gray.png", clear.convert("LA"))
    put("palette.png", plain.quantize(16), transparency=3)
    put("palette.gif", plain.quantize(16), transparency=3)
    put("clear.bmp", clear)
    put("packed.tif", plain, compression="tiff_lzw")


if __name__ == "__main__":
    main(sys.argv[1])
