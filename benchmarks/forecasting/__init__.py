"""Forecasts of time series: a competition, other libraries in rolling origins, streams, large fleets, exactness."""
