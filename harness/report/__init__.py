"""What a run says: ledger, verdict, closing table."""
