"""The transformations, one file each; :mod:`explorer.transforms.base` collects them."""
