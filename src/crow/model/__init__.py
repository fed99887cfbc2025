"""Models: one interface, one adapter per provider's wire format, one retry layer around them."""
