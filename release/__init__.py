"""Builds what users download, the same bytes each time: packages, archives, image, SBOM, sums."""
