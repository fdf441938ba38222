"""What the library knows about Python models: their source, their packages and environments, and the rules about both.

`reader` reads files and knows nothing of a repository, `rules` has the rules. The modules beside them say what a whole
repository means for a model: which modules it finds (`modules`, `search`), in which environment it runs
(`environments`), and what it sends to other models (`model_requests`). `installed` compares packages with this machine.
"""
