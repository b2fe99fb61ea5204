"""From the document to transitions, and into the journal."""
