"""Tree models of the backend `fil`: XGBoost, LightGBM and Treelite checkpoints, read without their libraries."""
