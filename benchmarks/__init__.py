"""Figures as ratios against a floor measured in the same run. ``make bench`` prints them and writes README.md."""
