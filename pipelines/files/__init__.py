"""Files that other processes look for: written whole, with the permissions that they need.

atomic_files writes them, locks shows whether a process has one locked, model_cards says which trained models may be
used, services announces the services that run here, and states reads the states of files that may vanish.
container_memory reads the memory limit of a container from the kernel's files.
"""
