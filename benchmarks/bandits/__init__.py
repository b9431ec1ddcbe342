"""Bandits measured: tasks whose best choices are known, textbook algorithms beside ours, and the runs of both."""
