"""The files of the ERP beside the reconciled customers, and beside the confirmed variants."""
