"""What one micro-batch adds to the model states: layers, head, embedding, images."""
