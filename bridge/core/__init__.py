"""Azure's documents, the changes between them, and the CloudEvents about those; pure."""
