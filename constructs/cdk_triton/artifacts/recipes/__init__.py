"""Recipes: declared builds that add files to a repository in the image that serves it."""
