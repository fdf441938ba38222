"""The artifact store: its bucket and handlers, where everything lies in it, and stores of other stacks."""
