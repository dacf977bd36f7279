"""What is known before a derivative is planned: who runs the functions, what has a reverse, what is refused."""
