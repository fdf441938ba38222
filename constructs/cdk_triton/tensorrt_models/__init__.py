"""What the library knows about TensorRT models: plans, the networks and recipes behind them, and the rules.

`reader` reads files and asks TensorRT's own parser, `rules` has the rules, `recipe` is what a recipe for a plan looks
like from here, and `sources` finds the network behind each plan.
"""
