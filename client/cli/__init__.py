"""The ``firm`` command. ``main`` is the light door: no attrs, no table, one verb's parser."""
