"""How an endpoint gets a new configuration: policies, alarms that roll back, and warnings."""
