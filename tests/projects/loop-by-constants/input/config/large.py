# what this run changes
batch_size = 24
block_size = 512
gradient_accumulation_steps = 4 * 4
