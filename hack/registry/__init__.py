"""A registry of images, built from source."""
