"""Encoded images to the input of Inception v3, on the GPU.

Triton's DALI backend runs this file when it loads the model and serialises the pipeline that it finds
(`@autoserialize`), with the very version of DALI that then executes it. Nothing has to be built beforehand, and
nothing breaks with the next release.
"""

import nvidia.dali as dali
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali.plugin.triton import autoserialize


# DALI asks for these numbers, and Triton replaces them: by max_batch_size and the parameter num_threads of
# config.pbtxt, and by the GPU of the model instance.
@autoserialize
@dali.pipeline_def(batch_size=16, num_threads=4, device_id=0)
def preprocess():
    """JPEG, PNG, … [bytes] UINT8 -> [299, 299, 3] FP32 in [-1, 1]."""
    # The name is that of the input in config.pbtxt. The bytes stay in host memory, where the decoder reads the headers.
    encoded = fn.external_source(device="cpu", name="DALI_INPUT_0")
    # "mixed": the headers on the CPU, the pixels on the GPU, with the JPEG hardware where there is one.
    images = fn.decoders.image(encoded, device="mixed", output_type=types.RGB)
    # As the published system does: the whole image, whatever its aspect ratio.
    images = fn.resize(images, resize_x=299, resize_y=299)
    # [0, 255] -> [-1, 1], which is what TF-slim's Inception v3 was trained on
    # (https://github.com/tensorflow/models/blob/master/research/slim/preprocessing/inception_preprocessing.py), and
    # not the mean and deviation of ImageNet, which belong to other networks.
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="HWC", mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5]
    )
