// The list of the moves of a game of chess, in pairs.

/** The number of the first move from `start`, a FEN or null, and 1 as its offset where Black makes it. */
export function firstNumber(start) {
  const fields = (start ?? "").split(" ");
  return { value: Number(fields[5]) || 1, offset: fields[1] === "b" ? 1 : 0 };
}

/** Fill `list` with `sans`, the moves from `start`; the board shows the position after `index` moves. */
export function drawMoves(list, sans, { start, index, onGo }) {
  const number = firstNumber(start);
  const items = [];
  let row = null;
  sans.forEach((san, i) => {
    const isWhite = (i + number.offset) % 2 === 0;
    if (isWhite || !row) {
      row = document.createElement("li");
      row.dataset.number = number.value + Math.floor((i + number.offset) / 2);
      if (!isWhite) row.append(document.createElement("span"));
      items.push(row);
    }
    const button = document.createElement("button");
    button.textContent = san;
    button.tabIndex = -1;
    button.setAttribute("aria-current", i + 1 === index);
    button.addEventListener("click", () => onGo(i + 1));
    row.append(button);
  });
  list.replaceChildren(...items);
  const current = list.querySelector('[aria-current="true"]');
  const [box, at] = [list, current ?? list.firstElementChild ?? list]
    .map((shown) => shown.getBoundingClientRect());
  // The list alone scrolls: scrollIntoView would move the page, and the board under the mouse.
  list.scrollTop += Math.min(0, at.top - box.top) + Math.max(0, at.bottom - box.bottom);
}
