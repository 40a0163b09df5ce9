"""How fast a pull is beside a floor, beside the requests alone, and beside dlt's generic source; see __main__."""
