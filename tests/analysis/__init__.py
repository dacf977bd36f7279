"""Facts about functions, without differentiating any."""
