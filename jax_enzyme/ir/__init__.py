"""The program: types, values, instructions and modules; read from text, written to text, checked, copied."""
