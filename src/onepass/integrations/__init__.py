"""The models in other libraries: as River models, and on Dask clusters."""
