"""The ERP's customers and variants beside the platform's: match, differences, findings."""
