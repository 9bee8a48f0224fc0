"""Every tensor of a rank before an engine shards it: parameters, adapters, quantised weights, optimizer states."""
