"""What the platform says: settings, the contract, the client, the walks and the dlt sources."""
