"""Training drafts for a target from nothing but the target; ``commands`` says how."""
