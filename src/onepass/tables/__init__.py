"""From files with columns to a model that knows what they mean, in constant memory."""
