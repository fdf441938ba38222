"""How SageMaker updates an endpoint: policies, rollback alarms and warnings."""
