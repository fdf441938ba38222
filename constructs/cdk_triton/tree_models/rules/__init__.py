"""The rules about tree models and the backend `fil`."""
