"""Encoded images to the input of ResNet-50, on the GPU.

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
    """JPEG, PNG, … [bytes] UINT8 -> [3, 224, 224] FP32: blue, green, red, each less its mean over ImageNet."""
    # The name is that of the input in config.pbtxt. The bytes stay in host memory, where the decoder reads the headers.
    encoded = fn.external_source(device="cpu", name="DALI_INPUT_0")
    # "mixed": the headers on the CPU, the pixels on the GPU, with the JPEG hardware where there is one.
    images = fn.decoders.image(encoded, device="mixed", output_type=types.BGR)
    # As the published system does: the whole image, whatever its aspect ratio.
    images = fn.resize(images, resize_x=224, resize_y=224)
    # What these weights were trained on: Caffe's order of colours and its means, and no division
    # (https://github.com/keras-team/keras/blob/master/keras/src/applications/imagenet_utils.py, mode "caffe").
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", mean=[103.939, 116.779, 123.68], std=[1.0, 1.0, 1.0]
    )
