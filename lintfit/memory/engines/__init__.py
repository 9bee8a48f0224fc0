"""Model states: what an engine (one process, DDP, DeepSpeed, FSDP) holds on a rank from phase to phase."""
