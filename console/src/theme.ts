import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const NAME = "threadkeep-console-theme";

const stored = (): Theme => {
  try {
    const name = localStorage.getItem(NAME);
    return name === "light" || name === "dark" ? name : "system";
  } catch {
    return "system"; // the browser keeps nothing for this page
  }
};

export const theme = signal<Theme>(stored());

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
  try {
    if (theme.value === "system") localStorage.removeItem(NAME);
    else localStorage.setItem(NAME, theme.value);
  } catch {
    // it lasts as long as the tab
  }
});
