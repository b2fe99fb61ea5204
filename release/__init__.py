"""Builds what users download: packages, archives, the image and their list, the same bytes each time."""
