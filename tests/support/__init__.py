"""What tests share: references, finite differences, raw calls, generated programs."""
