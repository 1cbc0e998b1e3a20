"""From one version of the schema to the next: what SQL can say in numbered files, and the rest beside them."""
