"""A parallel sentence grammar, English to Simplified Chinese, that knows every slot it filled."""
