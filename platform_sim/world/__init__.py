"""What is around the app: receivers, clocks, clients and faults, scripted and seeded."""
