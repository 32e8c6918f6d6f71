"""Engine: the two databases, their connections, files and queues."""
