"""Experiments that name the cause of a difference."""
