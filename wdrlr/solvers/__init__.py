"""What minimises a problem: Algorithm 1, the monolithic program, the interior-point method and closed forms."""
