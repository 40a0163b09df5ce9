"""How fast a pull is, compared with a floor, the requests alone, and dlt's generic source; see __main__."""
