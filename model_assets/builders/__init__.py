"""How the weights of the reference ensembles are fetched and built; `model_assets/prepare.py` is the way in."""
