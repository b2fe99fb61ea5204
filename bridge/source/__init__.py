"""From a document to transitions to the journal."""
