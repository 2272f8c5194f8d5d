"""The networks of the tasks, and the layers that they share."""
