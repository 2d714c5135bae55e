"""The provider that keeps terminals in a private tmux server, which outlives the daemon that started it."""
