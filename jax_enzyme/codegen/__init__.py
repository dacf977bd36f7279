"""From array functions to machine code: canonical form, entry, optimisation, objects, linking."""
