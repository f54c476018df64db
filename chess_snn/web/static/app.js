// The page: its tabs, theme, networks and connection. The parts are in their own modules.

import { CampaignPage } from "./campaign.js";
import { ChessPage } from "./chess.js";
import { Connection } from "./connection.js";
import { TilesPage } from "./twenty48.js";

const OTHER = "…"; // the choice of a registered network
let offered = "";
let loading = null; // the lists of networks, while they are read
const find = (id) => document.getElementById(id);

const THEMES = { "": ["◐", "as the system has it"], light: ["☀", "light"], dark: ["☾", "dark"] };

function setTheme(theme) {
  const [sign, name] = THEMES[theme];
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  find("theme").textContent = sign;
  find("theme").setAttribute("aria-label", `Theme: ${name}`);
  find("theme").title = `Theme: ${name}`;
  localStorage.setItem("theme", theme);
  window.dispatchEvent(new Event("theme"));
}

function setUpTheme() {
  const stored = localStorage.getItem("theme") ?? "";
  setTheme(stored in THEMES ? stored : "");
  find("theme").addEventListener("click", () => {
    const order = Object.keys(THEMES);
    const now = document.documentElement.dataset.theme ?? "";
    setTheme(order[(order.indexOf(now) + 1) % order.length]);
  });
}

/** One panel at a time; the arrow keys move among the tabs. */
function setUpTabs(onOpen) {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const open = (tab) => {
    for (const each of tabs) {
      each.setAttribute("aria-selected", each === tab);
      each.tabIndex = each === tab ? 0 : -1;
      find(each.getAttribute("aria-controls")).hidden = each !== tab;
    }
    onOpen(tab.getAttribute("aria-controls"));
  };
  for (const tab of tabs) {
    tab.addEventListener("click", () => open(tab));
    tab.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      const shown = tabs.filter((each) => !each.hidden);
      const to = shown[(shown.indexOf(tab) + by + shown.length) % shown.length];
      to.focus();
      open(to);
    });
  }
  return { open: (id) => open(tabs.find((tab) => tab.getAttribute("aria-controls") === id)) };
}

/** Fill a list of networks of one game, keeping the choice; the last entry asks for a registered one. */
function fillNetworks(select, networks, game) {
  const chosen = select.value;
  const options = networks.filter((network) => network.game === game)
    .map(({ model, label }) => Object.assign(new Option(label, model), { disabled: !model }));
  const kept = [...select.options].filter((option) => option.dataset.registered
    && !networks.some(({ model }) => model === option.value));
  select.replaceChildren(...options, ...kept, new Option("a registered network …", OTHER));
  if (chosen && [...select.options].some((option) => option.value === chosen)) select.value = chosen;
}

function askForRegistered(select) {
  let before = select.value;
  select.addEventListener("focus", () => { before = select.value; });
  select.addEventListener("change", (event) => {
    if (select.value !== OTHER) {
      before = select.value;
      return;
    }
    const name = prompt("Address in the registry, such as models:/chess-snn@champion")?.trim();
    select.value = before;
    event.stopImmediatePropagation();
    if (!name) return;
    if (![...select.options].some((option) => option.value === name)) {
      const option = new Option(name, name);
      option.dataset.registered = "1";
      select.prepend(option);
    }
    select.value = name;
    select.dispatchEvent(new Event("change"));
  });
}

async function readNetworks() {
  const answer = await fetch("api/networks");
  const networks = await answer.json();
  if (!answer.ok) throw new Error(networks.message);
  if (JSON.stringify(networks) === offered) return; // filling a list closes it
  offered = JSON.stringify(networks);
  fillNetworks(find("network"), networks, "chess");
  fillNetworks(find("tiles-network"), networks, "2048");
}

/** Bring the lists of networks up to date; if they cannot be read, say so and keep them. */
function loadNetworks() {
  loading ??= readNetworks().catch((error) => {
    find("connection").textContent = `The list of networks cannot be read: ${error.message}`;
  }).finally(() => { loading = null; });
  return loading;
}

setUpTheme();
askForRegistered(find("network")); // before the pages listen to changes
askForRegistered(find("tiles-network"));
const connection = new Connection();
const chess = new ChessPage(connection);
const tiles = new TilesPage(connection);
const campaign = new CampaignPage();
const tabs = setUpTabs((id) => {
  if (id === "tiles") tiles.open();
  if (id === "campaign") campaign.open();
  if (id !== "tiles") tiles.setAuto(false);
  if (location.hash !== `#${id}`) history.replaceState(null, "", `#${id}`);
});
connection.addEventListener("open", () => {
  find("connection").textContent = "";
  if (chess.game.position) chess.think(); // the search ended with the connection
});
connection.addEventListener("closed", ({ detail }) => {
  find("connection").textContent = detail || "No connection to the server; trying again …";
});
window.addEventListener("theme", () => [chess, tiles].forEach((page) => page.spikes.draw()));
for (const id of ["network", "tiles-network"]) {
  for (const event of ["focus", "pointerdown"]) {
    find(id).addEventListener(event, loadNetworks); // a campaign may have a new generation
  }
}
await loadNetworks();
find("tab-campaign").hidden = (await fetch("api/campaign")).status === 404;
await chess.show(0);
const wanted = location.hash.slice(1);
if (wanted === "tiles" || (wanted === "campaign" && !find("tab-campaign").hidden)) tabs.open(wanted);
document.body.dataset.ready = "1";
