"""The problem: metric, data, adversary and certificate, in plain NumPy. No solver is known here."""
