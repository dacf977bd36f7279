"""The call from XLA: functions with their buffers, recipes, registration of the handler, and the custom call itself."""
