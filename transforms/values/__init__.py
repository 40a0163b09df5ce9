"""Values as people write them: numbers, dates, phones, tax numbers, keys, and the one form of each that is compared."""
