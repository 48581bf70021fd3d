"""What takes too long, and too much of a machine, for tests: kills, races, full disks, many files.

`make stress` runs it. Each part counts what it tried and what did not hold; nothing here is timed.
"""
