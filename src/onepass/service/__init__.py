"""What onepass serves over HTTP: pages to look at, and models that learn behind them."""
