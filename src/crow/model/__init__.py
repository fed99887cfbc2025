"""Models: one interface, one adapter per provider's wire format (`wires/`), one retry layer around them."""
