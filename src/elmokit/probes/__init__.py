"""What contextual vectors know: probes of single layers, nearest neighbors, layer weights."""
