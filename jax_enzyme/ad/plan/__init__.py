"""What is decided before a derivative is emitted: what is taped or computed again, what a loop has to put back."""
