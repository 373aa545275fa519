import { computed, effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const STORAGE_KEY = "threadkeep-console-theme";

const stored = (): Theme => {
  try {
    const name = localStorage.getItem(STORAGE_KEY);
    return name === "light" || name === "dark" ? name : "system";
  } catch {
    return "system"; // storage is blocked
  }
};

const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = signal(dark.matches);
dark.addEventListener("change", () => (isDark.value = dark.matches));

export const theme = signal<Theme>(stored());

export const shownTheme = computed(() => (theme.value === "system" ? (isDark.value ? "dark" : "light") : theme.value));

effect(() => {
  document.documentElement.dataset["theme"] = shownTheme.value;
  try {
    if (theme.value === "system") localStorage.removeItem(STORAGE_KEY);
    else localStorage.setItem(STORAGE_KEY, theme.value);
  } catch {
  }
});
