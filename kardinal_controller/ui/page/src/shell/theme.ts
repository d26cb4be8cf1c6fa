// Light or dark: as the system says, until the viewer chooses.

const KEPT = "kardinal-theme";
export type Theme = "system" | "light" | "dark";

export function chosenTheme(): Theme {
  const kept = localStorage.getItem(KEPT);
  return kept === "light" || kept === "dark" ? kept : "system";
}

/** Apply the chosen theme to the document. */
export function applyTheme(): void {
  const theme = chosenTheme();
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

/** Go to the next theme: system, light, dark. */
export function nextTheme(): Theme {
  const order: readonly Theme[] = ["system", "light", "dark"];
  const next = order[(order.indexOf(chosenTheme()) + 1) % order.length] ?? "system";
  if (next === "system") localStorage.removeItem(KEPT);
  else localStorage.setItem(KEPT, next);
  applyTheme();
  return next;
}
