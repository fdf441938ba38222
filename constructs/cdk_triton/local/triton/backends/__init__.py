"""Stand-ins for Triton's GPU backends, as Python-based backends of the same names.

Triton's Python stub runs these modules, with the interpreter that runs the local AWS. `tensorrt` and `onnxruntime` run
the model's ONNX graph in ONNX Runtime on the CPU; `dali` runs the pipeline of `dali.py` with DALI on the CPU where it
is installed, else with numpy and Pillow. Each says in one log line that it is a stand-in: it answers for the plumbing
and for values within rounding, never for the speed or the accuracy of a GPU.

Whatever a stand-in does not understand it refuses when the model is loaded, by name.
"""
