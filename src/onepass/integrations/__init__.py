"""The models inside other people's systems: River and Dask."""
