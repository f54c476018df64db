// Moves in words, and the region that screen readers read aloud.

const PIECES = { N: "knight", B: "bishop", R: "rook", Q: "queen", K: "king" };

/** "Nxf3+" as "knight takes f3, check". */
export function moveInWords(san) {
  const end = san.endsWith("#") ? ", checkmate" : san.endsWith("+") ? ", check" : "";
  const plain = san.replace(/[+#]$/, "");
  if (plain === "O-O") return `castles short${end}`;
  if (plain === "O-O-O") return `castles long${end}`;
  const [, piece, from, takes, to, promotion] =
    plain.match(/^([NBRQK]?)([a-h]?[1-8]?)(x?)([a-h][1-8])(?:=([NBRQ]))?$/);
  return [
    PIECES[piece] ?? (takes || from ? `${from} pawn` : ""), piece ? from : "",
    takes ? "takes" : "", to, promotion ? `promotes to ${PIECES[promotion]}` : "",
  ].filter(Boolean).join(" ").replace(/ {2,}/g, " ").trim() + end;
}

/** Speak `text`, the same text twice in a row too. */
export function say(text) {
  const region = document.getElementById("speech");
  region.textContent = "";
  requestAnimationFrame(() => { region.textContent = text; });
}
