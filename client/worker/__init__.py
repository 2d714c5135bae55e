"""The worker of the profile `command`: runs a program for each Work of a session and submits its evidence. No model."""
