"""The instructions of derivatives: forward mode, both sweeps of reverse mode, and the helpers that they call."""
