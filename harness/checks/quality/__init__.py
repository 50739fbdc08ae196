"""What a conversion did to the sentences: phenomena in columns, token flips, corpus scores."""
