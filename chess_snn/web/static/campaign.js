// The page of a campaign: one line on what it does now, and its report, loaded again when a newer
// iteration is there.

const PERIOD_MS = 3000;

export class CampaignPage {
  constructor() {
    this.root = document.getElementById("campaign");
    const find = (selector) => this.root.querySelector(selector);
    [this.line, this.bar, this.frame] = [find(".status"), find("progress"), find("iframe")];
    this.frame.addEventListener("load", () => this.setTheme());
    window.addEventListener("theme", () => this.setTheme());
  }

  /** The page is shown: look now, and again while it is. */
  open() {
    clearInterval(this.timer);
    this.timer = setInterval(() => {
      if (this.root.hidden) clearInterval(this.timer);
      else if (!document.hidden) this.look();
    }, PERIOD_MS);
    this.look();
  }

  async look() {
    try {
      const answer = await fetch("api/campaign");
      const state = await answer.json();
      if (!answer.ok) throw new Error(state.message);
      this.line.textContent = state.line;
      this.bar.value = state.progress;
      if (state.version !== this.version) this.load();
      this.version = state.version;
    } catch (error) {
      this.line.textContent = error.message;
    }
  }

  load() {
    if (this.version === undefined) this.frame.src = "report";
    else this.frame.contentWindow.location.reload(); // what is shown stays until the new one is there
  }

  /** The report follows the choice on the page. */
  setTheme() {
    const { theme } = document.documentElement.dataset;
    const { dataset } = this.frame.contentDocument.documentElement;
    if (theme) dataset.theme = theme;
    else delete dataset.theme;
  }
}
