"""From the last hidden state to the loss: head, logits, and what a trainer scores."""
