"""Facts about a function, each computed once, printable, and known without differentiating anything."""
