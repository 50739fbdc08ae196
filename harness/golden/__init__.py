"""Golden translations on disk: reading, checking, proposing, reviewing. What they say of a candidate is a check."""
