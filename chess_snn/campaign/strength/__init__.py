"""How strong generations are: matches, the climb, the gate, champions and ratings."""
