"""What images add to a micro-batch: their encoder, its projector, and what the model holds of them beside its text."""
