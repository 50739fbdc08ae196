"""Contracts between the parts. Needs numpy only, so that every other package may import it."""
