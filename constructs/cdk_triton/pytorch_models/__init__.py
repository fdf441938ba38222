"""What the library knows about PyTorch models: TorchScript, PyTorch 2 archives, and the rules about them.

`reader` reads files without PyTorch and knows nothing of a repository; no pickle is ever executed. `rules` has the
rules. The modules beside them answer what several rules ask about the models of a repository.
"""
