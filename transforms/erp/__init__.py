"""The ERP's customers and variants compared with the platform's: match, differences, findings."""
