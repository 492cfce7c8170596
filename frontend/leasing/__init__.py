"""What the pages about money show: accounts, offers, orders, operations, leases and differences."""
