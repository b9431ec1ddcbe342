"""Wide layers, images and many classes; see `benchmarks.wide.__main__`."""
