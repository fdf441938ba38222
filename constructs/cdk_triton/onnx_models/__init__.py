"""What the library knows about ONNX models: files, graphs, ONNX Runtime's versions, and the rules about them.

`reader` reads files and knows nothing of a repository, `rules` has the rules. The modules beside them answer what
several rules ask about the networks of a repository.
"""
