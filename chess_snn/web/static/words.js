// Counts of things, as messages have them.

/** "1 game", "1,000 games", "2 plies". */
export function counted(number, noun) {
  const plural = noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`;
  return `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;
}
