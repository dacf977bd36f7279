"""Reports and kernels as a notebook shows them: HTML pages and SVG pictures, made of plain data."""
